/* A NCCL for tests, on memory of the host: the ranks are threads of one process, and each call is over when it returns. It
   refuses what the real one refuses: ranks that call different things, an aborted communicator. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBad = 4, kMostRanks = 8, kMostCalls = 16 };

typedef struct {
  char internal[128];
} Id;
typedef struct {
  const void* from;
  void* to;
  size_t count;
  int type, op, peer; /* peer: of a message, or the root */
  char kind;
} Call;
/* The ranks meet twice per collective: when all have said what they give, and when all have taken it. */
typedef struct World {
  Id id;
  int ranks, joined, met;
  uint64_t meetings;
  int aborted;
  Call calls[kMostRanks][kMostCalls];
  int call_count[kMostRanks];
  struct World* next;
} World;
typedef struct {
  World* world;
  int rank;
} Comm;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static World* worlds;
static int last_id;
static _Thread_local int group_depth;
static _Thread_local Comm* group_comm;

int ncclGetUniqueId(Id* id) {
  pthread_mutex_lock(&lock);
  memset(id, 0, sizeof *id);
  memcpy(id->internal, &(int){++last_id}, sizeof(int));
  pthread_mutex_unlock(&lock);
  return 0;
}

/* With the lock held. */
static int meet(World* world) {
  const uint64_t meeting = world->meetings;
  if (++world->met == world->ranks) {
    world->met = 0;
    ++world->meetings;
    pthread_cond_broadcast(&changed);
  }
  while (world->meetings == meeting && !world->aborted) pthread_cond_wait(&changed, &lock);
  return world->aborted ? kBad : 0;
}

int ncclCommInitRank(Comm** comm, int ranks, Id id, int rank) {
  if (ranks > kMostRanks || rank >= ranks) return kBad;
  pthread_mutex_lock(&lock);
  World* world = worlds;
  while (world && memcmp(&world->id, &id, sizeof id) != 0) world = world->next;
  if (!world) {
    world = calloc(1, sizeof *world);
    *world = (World){.id = id, .ranks = ranks, .next = worlds};
    worlds = world;
  }
  const int result = world->ranks == ranks ? meet(world) : kBad;
  pthread_mutex_unlock(&lock);
  *comm = malloc(sizeof **comm);
  **comm = (Comm){world, rank};
  return result;
}

int ncclCommAbort(Comm* comm) {
  pthread_mutex_lock(&lock);
  comm->world->aborted = 1;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0; /* its memory stays: a call may be under way */
}
int ncclCommGetAsyncError(Comm* comm, int* error) {
  pthread_mutex_lock(&lock);
  *error = comm->world->aborted ? kBad : 0;
  pthread_mutex_unlock(&lock);
  return 0;
}
const char* ncclGetErrorString(int result) { return result ? "the stub refuses" : "no error"; }

static size_t bytes_of(int type) {
  static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  return bytes[type];
}

#define REDUCE(T)                                                                               \
  for (size_t i = 0; i < count; ++i) {                                                          \
    T* a = (T*)to + i;                                                                          \
    const T b = ((const T*)more)[i];                                                            \
    *a = op == 0 ? *a + b : op == 1 ? *a * b : op == 2 ? (*a > b ? *a : b) : (*a < b ? *a : b); \
  }
static void reduce(int type, int op, size_t count, void* to, const void* more) {
  switch (type) {
    case 4: REDUCE(int64_t) break;
    case 7: REDUCE(float) break;
    case 8: REDUCE(double) break;
    default: abort();
  }
}

/* Takes this rank's part, when all have said what they give. */
static int take(World* world, int rank) {
  for (int k = 0; k < world->call_count[rank]; ++k) {
    const Call* call = &world->calls[rank][k];
    const size_t bytes = call->count * bytes_of(call->type);
    if (call->kind == 's') continue;
    if (call->kind == 'm') { /* receives */
      const Call* sent = NULL;
      for (int i = 0; i < world->call_count[call->peer]; ++i) {
        const Call* other = &world->calls[call->peer][i];
        if (other->kind == 's' && other->peer == rank) sent = other;
      }
      if (!sent || sent->count != call->count) return kBad;
      memcpy(call->to, sent->from, bytes);
      continue;
    }
    for (int from = 0; from < world->ranks; ++from) {
      const Call* other = &world->calls[from][k];
      if (other->kind != call->kind || other->count != call->count || other->type != call->type) return kBad;
      const char* given = (const char*)other->from + (call->kind == 'x' ? (size_t)rank * bytes : 0);
      if (call->kind == 'g') memcpy((char*)call->to + (size_t)from * bytes, given, bytes);
      if (call->kind == 'b' && from == call->peer) memcpy(call->to, given, bytes);
      if (call->kind == 'r' || call->kind == 'x') {
        if (from == 0) memcpy(call->to, given, bytes);
        if (from > 0) reduce(call->type, call->op, call->count, call->to, given);
      }
    }
  }
  return 0;
}

static int run(Comm* comm) {
  World* world = comm->world;
  pthread_mutex_lock(&lock);
  int result = meet(world);
  if (!result) result = take(world, comm->rank);
  const int left = meet(world);
  world->call_count[comm->rank] = 0;
  pthread_mutex_unlock(&lock);
  return result ? result : left;
}

static int say(Comm* comm, Call call) {
  World* world = comm->world;
  pthread_mutex_lock(&lock);
  const int good = !world->aborted && world->call_count[comm->rank] < kMostCalls;
  if (good) world->calls[comm->rank][world->call_count[comm->rank]++] = call;
  pthread_mutex_unlock(&lock);
  if (!good) return kBad;
  group_comm = comm;
  return group_depth > 0 ? 0 : run(comm);
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, Comm* comm, void* stream) {
  (void)stream;
  return say(comm, (Call){from, to, count, type, op, 0, 'r'});
}
int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, Comm* comm, void* stream) {
  (void)stream;
  return say(comm, (Call){from, to, count, type, 0, root, 'b'});
}
int ncclAllGather(const void* from, void* to, size_t count, int type, Comm* comm, void* stream) {
  (void)stream;
  return say(comm, (Call){from, to, count, type, 0, 0, 'g'});
}
int ncclReduceScatter(const void* from, void* to, size_t count, int type, int op, Comm* comm, void* stream) {
  (void)stream;
  return say(comm, (Call){from, to, count, type, op, 0, 'x'});
}
int ncclSend(const void* from, size_t count, int type, int to, Comm* comm, void* stream) {
  (void)stream;
  return say(comm, (Call){from, NULL, count, type, 0, to, 's'});
}
int ncclRecv(void* to, size_t count, int type, int from, Comm* comm, void* stream) {
  (void)stream;
  return say(comm, (Call){NULL, to, count, type, 0, from, 'm'});
}
int ncclGroupStart(void) { return ++group_depth, 0; }
int ncclGroupEnd(void) { return --group_depth > 0 || !group_comm ? 0 : run(group_comm); }
