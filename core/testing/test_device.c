#define _POSIX_C_SOURCE 200809L
#include "core/testing/test_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef LTC_TEST_SLEEP_MS
#define LTC_TEST_SLEEP_MS 0
#endif

ltc_status* test_error(ltc_plugin* plugin, ltc_code code, uint32_t node, const char* message) {
  return plugin->host->status_create(plugin->host->host, code, node, message, strlen(message));
}

ltc_status* test_out_of_memory(ltc_plugin* plugin) {
  return test_error(plugin, LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of host memory");
}

ltc_code test_code_of(const char* message) { return strcmp(message, TEST_LOST) == 0 ? LTC_DEVICE_LOST : LTC_INTERNAL; }

/* ---- buffers ---- */

ltc_buffer* test_buffer_create(ltc_device* device, uint64_t bytes) {
  ltc_buffer* buffer = calloc(1, sizeof *buffer);
  void* data = bytes <= SIZE_MAX / 2 ? calloc(bytes + 1, 1) : NULL;
  if (!buffer || !data) {
    free(buffer);
    free(data);
    return NULL;
  }
  buffer->device = device;
  buffer->bytes = bytes;
  buffer->data = data;
  pthread_mutex_lock(&device->lock);
  device->in_use_bytes += bytes;
  if (device->in_use_bytes > device->peak_bytes) device->peak_bytes = device->in_use_bytes;
  pthread_mutex_unlock(&device->lock);
  return buffer;
}

void test_buffer_free(ltc_buffer* buffer) {
  pthread_mutex_lock(&buffer->device->lock);
  buffer->device->in_use_bytes -= buffer->bytes;
  pthread_mutex_unlock(&buffer->device->lock);
  free(buffer->data);
  free(buffer);
}

/* ---- the queue ---- */

static void release_event(ltc_event* event) { /* with the device's lock held */
  if (--event->references == 0) free(event);
}

static const char* run_plan(ltc_device* device, struct task* task) {
  const size_t input_count = test_plan_input_count(task->plan);
  const size_t output_count = test_plan_output_count(task->plan);
  const void** inputs = calloc(input_count + 1, sizeof *inputs);
  void** outputs = calloc(output_count + 1, sizeof *outputs);
  bool good = inputs && outputs;
  for (size_t i = 0; good && i < input_count; ++i) inputs[i] = task->inputs[i]->data;
  for (size_t i = 0; good && i < output_count; ++i) outputs[i] = task->outputs[i]->data;
  good = good && test_plan_run(task->plan, inputs, task->scalars, outputs);
  free(inputs);
  free(outputs);
  if (LTC_TEST_SLEEP_MS > 0) {
    const struct timespec pause = {LTC_TEST_SLEEP_MS / 1000, LTC_TEST_SLEEP_MS % 1000 * 1000000L};
    nanosleep(&pause, NULL);
  }
  ++device->runs;
  if (device->may_be_lost && device->runs > LTC_TEST_RUNS_UNTIL_LOST) {
    pthread_mutex_lock(&device->lock);
    device->is_lost = true;
    pthread_mutex_unlock(&device->lock);
    return TEST_LOST;
  }
#ifdef LTC_TEST_FAILS
  if (device->runs % 2 == 0) return "every second run fails";
#endif
  return good ? NULL : "out of host memory while running";
}

void test_task_free(struct task* task) {
  if (task->plan) test_plan_release(task->plan);
  free(task->inputs);
  free(task->scalars);
  free(task->outputs);
  free(task);
}

/* Why the task failed, or NULL. */
static const char* run_task(struct task* task, ltc_device* device) {
  const char* failed = NULL;
  if (task->copy_to) memmove(task->copy_to, task->copy_from, task->size_bytes);
  if (task->plan) failed = run_plan(device, task);
  if (task->buffer) test_buffer_free(task->buffer);
  if (task->executable) {
    test_plan_release(task->executable->plan);
    free(task->executable);
  }
  pthread_mutex_lock(&device->lock);
  if (task->event) {
    task->event->error = failed;
    task->event->done = true;
    release_event(task->event);
  }
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
  test_task_free(task);
  return failed;
}

static void* work(void* context) {
  ltc_device* device = context;
  pthread_mutex_lock(&device->lock);
  while (device->first || !device->stop) {
    struct task* task = device->first;
    if (!task) {
      pthread_cond_wait(&device->changed, &device->lock);
      continue;
    }
    device->first = task->next;
    if (!device->first) device->last = NULL;
    pthread_mutex_unlock(&device->lock);
    (void)run_task(task, device);
    pthread_mutex_lock(&device->lock);
  }
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

const char* test_submit(ltc_device* device, struct task* task, ltc_event** done) {
  if (!IS_ASYNC) return run_task(task, device);
  pthread_mutex_lock(&device->lock);
  if (task->event) {
    task->event->references = 2;
    *done = task->event;
  }
  if (device->last) device->last->next = task;
  if (!device->last) device->first = task;
  device->last = task;
  pthread_cond_broadcast(&device->changed);
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

struct task* test_task_create(ltc_device* device, bool with_event) {
  struct task* task = calloc(1, sizeof *task);
  if (!task || !with_event || !IS_ASYNC) return task;
  task->event = calloc(1, sizeof *task->event);
  if (!task->event) {
    free(task);
    return NULL;
  }
  task->event->device = device;
  return task;
}

/* ---- events ---- */

static struct timespec time_after(uint64_t ns) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_sec += (time_t)(ns / 1000000000u);
  at.tv_nsec += (long)(ns % 1000000000u);
  if (at.tv_nsec >= 1000000000L) {
    at.tv_nsec -= 1000000000L;
    at.tv_sec += 1;
  }
  return at;
}

ltc_status* test_event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
  ltc_device* device = event->device;
  const uint64_t year_ns = UINT64_C(31536000000000000); /* no clock overflows, and nobody notices */
  const struct timespec until = time_after(timeout_ns < year_ns ? timeout_ns : year_ns);
  pthread_mutex_lock(&device->lock);
  int late = 0;
  while (!event->done && !late) late = pthread_cond_timedwait(&device->changed, &device->lock, &until);
  *finished = event->done;
  const char* failed = event->done ? event->error : NULL;
  pthread_mutex_unlock(&device->lock);
  return failed ? test_error(device->plugin, test_code_of(failed), LTC_NONE, failed) : NULL;
}

void test_event_destroy(ltc_event* event) {
  ltc_device* device = event->device;
  pthread_mutex_lock(&device->lock);
  release_event(event);
  pthread_mutex_unlock(&device->lock);
}

ltc_event* test_event_again(ltc_device* device, ltc_event* event) {
  pthread_mutex_lock(&device->lock);
  if (device->first_event) {
    release_event(event);
  } else {
    device->first_event = event;
    event->references += 1000;
  }
  pthread_mutex_unlock(&device->lock);
  return device->first_event;
}

/* ---- opening and closing ---- */

ltc_device* test_device_open(ltc_plugin* plugin) {
  ltc_device* made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->plugin = plugin;
  made->may_be_lost = LTC_TEST_RUNS_UNTIL_LOST > 0 && plugin->opened++ == 0;
  ++plugin->open;
  pthread_mutex_init(&made->lock, NULL);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&made->changed, &clock);
  pthread_condattr_destroy(&clock);
  if (IS_ASYNC && pthread_create(&made->worker, NULL, work, made) != 0) {
    free(made);
    return NULL;
  }
  return made;
}

void test_device_close(ltc_device* device) {
  --device->plugin->open;
  if (IS_ASYNC) {
    pthread_mutex_lock(&device->lock);
    device->stop = true;
    pthread_cond_broadcast(&device->changed);
    pthread_mutex_unlock(&device->lock);
    pthread_join(device->worker, NULL);
  }
  const ltc_host_api* host = device->plugin->host;
  char line[80];
  const int size = snprintf(line, sizeof line, "device closed with %llu bytes in use", (unsigned long long)device->in_use_bytes);
  if (device->in_use_bytes > 0) host->log(host->host, LTC_LOG_WARN, line, (size_t)size);
  pthread_cond_destroy(&device->changed);
  pthread_mutex_destroy(&device->lock);
  free(device->first_event);
  free(device);
}
