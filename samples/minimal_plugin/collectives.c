/* Collectives between processes, over the host's store: each rank leaves its values there and takes those of the others. It shows
 * the calls and their order. A plugin with links of its own leaves the addresses of these in the store, and nothing else. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "ltc/entry.h"
#include "minimal.h"

#define SLICE_NS 50000000u /* between two looks whether a group was aborted */

struct ltc_group {
  ltc_group* next; /* of all groups of this library */
  int64_t number;
  uint32_t rank, size;
  uint64_t timeout_ns;
  const ltc_store* store;
  uint64_t sequence; /* of the collective that is under way, or was the last */
  atomic_bool aborted;
  bool in_use; /* by a collective; under the lock */
};

/* ---- the groups of this library: numbers are never given twice in a process ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static ltc_group* groups;

/* With the lock held. */
static ltc_group* find_group(int64_t number) {
  ltc_group* group = groups;
  while (group && group->number != number) group = group->next;
  return group;
}

static bool has_group(int64_t number) {
  pthread_mutex_lock(&lock);
  const bool has = find_group(number) != NULL;
  pthread_mutex_unlock(&lock);
  return has;
}

/* ---- bytes in the store ---- */

struct bytes {
  char* data;
  size_t size, room;
};

static bool write_bytes(void* context, const void* data, size_t size) {
  struct bytes* bytes = context;
  if (size > bytes->room - bytes->size) return false;
  if (size) memcpy(bytes->data + bytes->size, data, size);
  bytes->size += size;
  return true;
}

/* Values for one rank, or for all where `to` is LTC_NONE. */
static ltc_string key_of(char* text, size_t room, uint64_t sequence, uint32_t from, uint32_t to) {
  const int size = snprintf(text, room, "%llu/%u/%u", (unsigned long long)sequence, from, to);
  return (ltc_string){text, (size_t)size};
}

static bool leave(const ltc_group* group, uint32_t to, const void* data, size_t size) {
  char text[64];
  const ltc_string key = key_of(text, sizeof text, group->sequence, group->rank, to);
  const ltc_string value = {data ? data : "", size};
  return group->store->set(group->store->store, &key, &value);
}

static void forget(const ltc_group* group, uint64_t sequence, uint32_t to) {
  char text[64];
  const ltc_string key = key_of(text, sizeof text, sequence, group->rank, to);
  group->store->erase(group->store->store, &key);
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Takes the bytes that `from` has left for `to`, exactly so many. */
static bool take(ltc_group* group, uint32_t from, uint32_t to, void* data, size_t size) {
  char text[64];
  const ltc_string key = key_of(text, sizeof text, group->sequence, from, to);
  const uint64_t begin = now_ns();
  while (!group->aborted && now_ns() - begin < group->timeout_ns) {
    struct bytes bytes = {data, 0, size};
    const ltc_sink sink = {&bytes, write_bytes};
    if (group->store->get(group->store->store, &key, SLICE_NS, &sink)) return bytes.size == size;
  }
  return false;
}

static size_t bytes_of(const struct array* array) { return (size_t)array->count * element_bytes(array->dtype); }

/* ---- kernels ---- */

/* Begins a collective; NULL, with the failure, where the group is gone. */
static ltc_group* begin(struct call* call, int64_t number) {
  pthread_mutex_lock(&lock);
  ltc_group* group = find_group(number);
  if (group && group->aborted) group = NULL;
  if (group) group->in_use = true;
  pthread_mutex_unlock(&lock);
  if (!group) {
    (void)fail(call, LTC_CANCELLED, "the group was aborted or has ended");
    return NULL;
  }
  ++group->sequence;
  return group;
}

/* Ends it. A rank that has taken something of this collective from all ranks knows that all of them have ended the one before. */
static bool end(struct call* call, ltc_group* group, bool good) {
  if (!good) {
    const bool aborted = atomic_exchange(&group->aborted, true);
    (void)fail(call, aborted ? LTC_CANCELLED : LTC_TIMEOUT, "rank %u of %u: another rank did not take part", group->rank,
               group->size);
  }
  for (uint32_t rank = 0; good && rank <= group->size; ++rank)
    forget(group, group->sequence - 1, rank < group->size ? rank : LTC_NONE);
  pthread_mutex_lock(&lock);
  group->in_use = false;
  pthread_cond_broadcast(&ended);
  pthread_mutex_unlock(&lock);
  return good;
}

#define SUM(a, b) (a + b)
#define PRODUCT(a, b) (a * b)
#define MIN(a, b) (b < a || b != b ? b : a)
#define MAX(a, b) (b > a || b != b ? b : a)
#define IS(op, name) (memcmp(&(op)->values[0], name "\0\0\0\0\0\0\0", sizeof(union number)) == 0)

/* Kernel reduce_into_suffix: element by element. */
#define REDUCE(T, suffix, ...)                                                                           \
  static void reduce_into_##suffix(const struct attr* op, int64_t count, void* into, const void* more) { \
    T* a = into;                                                                                         \
    const T* b = more;                                                                                   \
    if (IS(op, "sum"))                                                                                   \
      for (int64_t i = 0; i < count; ++i) a[i] = (T)SUM(a[i], b[i]);                                     \
    else if (IS(op, "product"))                                                                          \
      for (int64_t i = 0; i < count; ++i) a[i] = (T)PRODUCT(a[i], b[i]);                                 \
    else if (IS(op, "min"))                                                                              \
      for (int64_t i = 0; i < count; ++i) a[i] = MIN(a[i], b[i]);                                        \
    else                                                                                                 \
      for (int64_t i = 0; i < count; ++i) a[i] = MAX(a[i], b[i]);                                        \
  }                                                                                                      \
  static bool all_reduce_##suffix(struct call* call) { return all_reduce(call, reduce_into_##suffix); }  \
  static bool reduce_scatter_##suffix(struct call* call) { return reduce_scatter(call, reduce_into_##suffix); }

typedef void reduce_into(const struct attr* op, int64_t count, void* into, const void* more);

/* Where a result goes; one that nobody wants, which takes part all the same, to memory of its own. NULL when out of memory. */
static char* place_of(const struct call* call, size_t bytes, void** spare) {
  *spare = call->out[0] ? NULL : malloc(bytes + 1);
  return call->out[0] ? call->out[0]->data : *spare;
}

/* The rows of `count` elements that begin there, of all ranks, reduced in their order: the same bits wherever it is done. */
static bool reduce_rows(struct call* call, ltc_group* group, int64_t begin, int64_t count, reduce_into* reduce) {
  const struct array* in = call->in[0];
  const size_t size = bytes_of(in), element = element_bytes(in->dtype);
  void *spare, *more = malloc(size + 1), *to = place_of(call, (size_t)count * element, &spare);
  bool good = more && to && leave(group, LTC_NONE, in->data, size);
  for (uint32_t rank = 0; good && rank < group->size; ++rank) {
    good = take(group, rank, LTC_NONE, more, size);
    const char* rows = (char*)more + (size_t)begin * element;
    if (good && rank == 0) memcpy(to, rows, (size_t)count * element);
    if (good && rank > 0) reduce(&call->attrs[0], count, to, rows);
  }
  free(more);
  free(spare);
  return good;
}

static bool all_reduce(struct call* call, reduce_into* reduce) {
  ltc_group* group = begin(call, attr_int(&call->attrs[1], 0));
  return group && end(call, group, reduce_rows(call, group, 0, call->in[0]->count, reduce));
}

static bool reduce_scatter(struct call* call, reduce_into* reduce) {
  ltc_group* group = begin(call, attr_int(&call->attrs[1], 0));
  if (!group) return false;
  const int64_t count = call->in[0]->count / group->size;
  return end(call, group, reduce_rows(call, group, group->rank * count, count, reduce));
}

FOR_FLOATS(REDUCE)
FOR_INTS(REDUCE)

/* All leave something, all but the root nothing: so that each knows how far the others are. */
static bool broadcast(struct call* call) {
  ltc_group* group = begin(call, attr_int(&call->attrs[1], 0));
  if (!group) return false;
  const uint32_t root = (uint32_t)attr_int(&call->attrs[0], 0);
  const size_t size = bytes_of(call->in[0]);
  void* spare;
  char* to = place_of(call, size, &spare);
  bool good = to && leave(group, LTC_NONE, call->in[0]->data, group->rank == root ? size : 0);
  for (uint32_t rank = 0; good && rank < group->size; ++rank) good = take(group, rank, LTC_NONE, to, rank == root ? size : 0);
  free(spare);
  return end(call, group, good);
}

static bool all_gather(struct call* call) {
  ltc_group* group = begin(call, attr_int(&call->attrs[1], 0));
  if (!group) return false;
  const size_t size = bytes_of(call->in[0]);
  void* spare;
  char* to = place_of(call, size * group->size, &spare);
  bool good = to && leave(group, LTC_NONE, call->in[0]->data, size);
  for (uint32_t rank = 0; good && rank < group->size; ++rank) good = take(group, rank, LTC_NONE, to + rank * size, size);
  free(spare);
  return end(call, group, good);
}

static bool all_to_all(struct call* call) {
  ltc_group* group = begin(call, attr_int(&call->attrs[2], 0));
  if (!group) return false;
  const struct array* in = call->in[0];
  const struct attr *to = &call->attrs[0], *from = &call->attrs[1];
  size_t row = element_bytes(in->dtype), taken = 0;
  for (uint32_t dim = 1; dim < in->rank; ++dim) row *= (size_t)in->sizes[dim];
  for (size_t rank = 0; rank < from->count; ++rank) taken += (size_t)from->values[rank].i * row;
  void* spare;
  char *at = place_of(call, taken, &spare), *next = in->data;
  bool good = at && to->count == group->size && from->count == group->size;
  for (uint32_t rank = 0; good && rank < group->size; ++rank) {
    const size_t size = (size_t)to->values[rank].i * row;
    good = leave(group, rank, next, size);
    next += size;
  }
  for (uint32_t rank = 0; good && rank < group->size; ++rank) {
    const size_t size = (size_t)from->values[rank].i * row;
    good = take(group, rank, group->rank, at, size);
    at += size;
  }
  free(spare);
  return end(call, group, good);
}

/* ---- rows ---- */

static bool takes(const ltc_node* node, const char* operands) {
  const ltc_attr* group = ltc_find_attr(node, "group", strlen("group"), "");
  return ltc_node_matches(node, operands) && group && has_group(group->value.ints[0]);
}
static bool reduces(const ltc_node* node, const char* operands) {
  const ltc_attr* op = ltc_find_attr(node, "op", strlen("op"), "");
  static const char* const known[] = {"sum", "product", "min", "max"};
  bool is_known = false;
  for (size_t i = 0; op && i < 4; ++i) is_known |= ltc_is_name(op->value.strings[0], known[i], strlen(known[i]), "");
  return is_known && takes(node, operands);
}
static bool takes_reduction(const ltc_node* node) { return reduces(node, "T:input T?:after Z:op I:group"); }
static bool takes_broadcast(const ltc_node* node) { return takes(node, "T:input T?:after I:root I:group"); }
static bool takes_gather(const ltc_node* node) { return takes(node, "T:input T?:after I:ranks I:group"); }
static bool takes_exchange(const ltc_node* node) { return takes(node, "T:input T?:after I*:to I*:from_ I:group"); }

const struct op collective_ops[] = {
    {"ltc_c10d::all_reduce", "Tt:Tt", {"op", "group"}, {FLOATS(all_reduce), INTS(all_reduce)}, takes_reduction},
    {"ltc_c10d::reduce_scatter", "Tt:Tt", {"op", "group"}, {FLOATS(reduce_scatter), INTS(reduce_scatter)}, takes_reduction},
    {"ltc_c10d::broadcast", "Tt:Tt", {"root", "group"}, {ALL(broadcast)}, takes_broadcast},
    {"ltc_c10d::all_gather", "Tt:Tt", {"ranks", "group"}, {ALL(all_gather)}, takes_gather},
    {"ltc_c10d::all_to_all", "Tt:Tt", {"to", "from_", "group"}, {ALL(all_to_all)}, takes_exchange},
    {0},
};

/* ---- groups ---- */

static ltc_status* error(const ltc_host_api* host, ltc_code code, const char* text) {
  return host->status_create(host->host, code, LTC_NONE, text, strlen(text));
}

static ltc_status* group_create(ltc_device* device, const ltc_group_args* args, ltc_group** group) {
  const ltc_host_api* host = host_of(device);
  ltc_group* made = calloc(1, sizeof *made);
  if (!made) return error(host, LTC_RESOURCE_EXHAUSTED, "out of memory");
  *made = (ltc_group){
      .number = args->number, .rank = args->rank, .size = args->size, .timeout_ns = args->timeout_ns, .store = args->store};
  bool good = leave(made, LTC_NONE, NULL, 0);
  for (uint32_t rank = 0; good && rank < made->size; ++rank) good = take(made, rank, LTC_NONE, NULL, 0);
  if (!good) {
    free(made);
    return error(host, LTC_TIMEOUT, "not all ranks have joined the group");
  }
  pthread_mutex_lock(&lock);
  made->next = groups;
  groups = made;
  pthread_mutex_unlock(&lock);
  *group = made;
  return NULL;
}

static void group_abort(ltc_group* group) { group->aborted = true; }

static void group_destroy(ltc_group* group) {
  pthread_mutex_lock(&lock);
  while (group->in_use) pthread_cond_wait(&ended, &lock);
  ltc_group** place = &groups;
  while (*place != group) place = &(*place)->next;
  *place = group->next;
  pthread_mutex_unlock(&lock);
  free(group);
}

const ltc_collectives collectives = {
    .head = {.struct_size = sizeof(ltc_collectives), .kind = LTC_EXTENSION_COLLECTIVE, .version = 1, .next = &profile_and_more},
    .group_create = group_create,
    .group_abort = group_abort,
    .group_destroy = group_destroy,
};
