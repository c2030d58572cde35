#define _POSIX_C_SOURCE 200809L
#include "queue.h"

#include <pthread.h>
#include <time.h>

struct queue {
  const ltc_host_api* host;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* work came or ended, or `stop` was set */
  struct work *first, *last;
  bool stop;
  pthread_t thread;
};

/* Held by the host and by the work; under the queue's lock. */
struct ltc_event {
  struct queue* queue;
  int references;
  bool done;
  struct failure failure;
};

static void release(ltc_event* event) {
  if (--event->references == 0) {
    free(event->failure.good);
    free(event);
  }
}

/* With the lock held, which it gives up while the work runs. */
static void run_first(struct queue* queue) {
  struct work* work = queue->first;
  queue->first = work->next;
  if (!queue->first) queue->last = NULL;
  pthread_mutex_unlock(&queue->lock);
  ltc_event* event = work->event;
  struct failure failure = {0};
  const bool good = work->run(work, &failure);
  pthread_mutex_lock(&queue->lock);
  if (!event) {
    free(failure.good);
    return;
  }
  if (!good) event->failure = failure;
  event->done = true;
  release(event);
  pthread_cond_broadcast(&queue->changed);
}

static void* work_off(void* context) {
  struct queue* queue = context;
  pthread_mutex_lock(&queue->lock);
  while (queue->first || !queue->stop) {
    if (queue->first) {
      run_first(queue);
    } else {
      pthread_cond_wait(&queue->changed, &queue->lock);
    }
  }
  pthread_mutex_unlock(&queue->lock);
  return NULL;
}

struct queue* queue_create(const ltc_host_api* host) {
  struct queue* queue = calloc(1, sizeof *queue);
  if (!queue) return NULL;
  queue->host = host;
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, &clock);
  pthread_condattr_destroy(&clock);
  if (pthread_create(&queue->thread, NULL, work_off, queue) == 0) return queue;
  free(queue);
  return NULL;
}

void queue_destroy(struct queue* queue) {
  pthread_mutex_lock(&queue->lock);
  queue->stop = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  pthread_join(queue->thread, NULL);
  pthread_cond_destroy(&queue->changed);
  pthread_mutex_destroy(&queue->lock);
  free(queue);
}

bool queue_push(struct queue* queue, struct work* work, ltc_event** done) {
  work->next = NULL;
  work->event = NULL;
  if (done) {
    work->event = calloc(1, sizeof *work->event);
    if (!work->event) return false;
    work->event->queue = queue;
    work->event->references = 2;
    *done = work->event;
  }
  pthread_mutex_lock(&queue->lock);
  if (queue->last) {
    queue->last->next = work;
  } else {
    queue->first = work;
  }
  queue->last = work;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return true;
}

static struct timespec time_after(uint64_t ns) {
  const uint64_t year = UINT64_C(31536000000000000); /* no clock overflows, and nobody notices */
  if (ns > year) ns = year;
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  ns += (uint64_t)at.tv_nsec;
  at.tv_sec += (time_t)(ns / 1000000000u);
  at.tv_nsec = (long)(ns % 1000000000u);
  return at;
}

ltc_status* queue_event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
  struct queue* queue = event->queue;
  const struct timespec until = time_after(timeout_ns);
  pthread_mutex_lock(&queue->lock);
  int late = 0;
  while (!event->done && !late) late = pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
  const bool done = event->done;
  pthread_mutex_unlock(&queue->lock);
  *finished = done;
  const struct failure* failure = &event->failure;
  if (!done || !failure->code) return NULL;
  return queue->host->status_create(queue->host->host, failure->code, failure->node, failure->message, strlen(failure->message));
}

ltc_status* queue_event_good_outputs(ltc_event* event, size_t output_count, uint8_t* good) {
  if (event->failure.good) memcpy(good, event->failure.good, output_count);
  return NULL;
}

void queue_event_destroy(ltc_event* event) {
  struct queue* queue = event->queue;
  pthread_mutex_lock(&queue->lock);
  release(event);
  pthread_mutex_unlock(&queue->lock);
}
