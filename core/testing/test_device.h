/* The device of the test plugin: its objects, its queue, its events. test_plugin.c has the slots. */
#ifndef LTC_TEST_DEVICE_H
#define LTC_TEST_DEVICE_H

#include <pthread.h>

#include "core/testing/test_plan.h"
#include "ltc/plugin.h"

#ifdef LTC_TEST_ASYNC
enum { IS_ASYNC = 1 };
#else
enum { IS_ASYNC = 0 };
#endif

/* How many runs the first device of an instance does before it is lost; 0: it never is. */
#ifndef LTC_TEST_RUNS_UNTIL_LOST
#define LTC_TEST_RUNS_UNTIL_LOST 0
#endif

struct ltc_plugin {
  const ltc_host_api* host;
  uint32_t opened, open; /* devices, since the entry and now; of LTC_TEST_RUNS_UNTIL_LOST, one is open at a time */
};

struct ltc_buffer {
  ltc_device* device;
  uint64_t bytes;
  void* data;
};

struct ltc_program {
  const ltc_host_api* host;
  test_plan* plan;
};

struct ltc_executable {
  ltc_device* device;
  test_plan* plan;
};

/* Shared by the host and the task; under the device's lock. */
struct ltc_event {
  ltc_device* device;
  int references;
  bool done;
  const char* error;
};

/* Work in the queue. Destroys are work as well: so they take effect in order. */
struct task {
  struct task* next;
  ltc_event* event; /* may be NULL */
  void* copy_to;    /* a copy of size_bytes, where not NULL */
  const void* copy_from;
  uint64_t size_bytes;
  test_plan* plan; /* a run, where not NULL */
  ltc_buffer** inputs;
  ltc_scalar* scalars;
  ltc_buffer** outputs;
  ltc_buffer* buffer; /* to free, where not NULL */
  ltc_executable* executable;
};

struct ltc_device {
  ltc_plugin* plugin;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a task came or ended, or stop was set */
  struct task *first, *last;
  bool stop;
  pthread_t worker;
  uint64_t runs;
  bool may_be_lost, is_lost;
  uint64_t in_use_bytes, peak_bytes;
  ltc_event* first_event; /* of test_event_again */
};

ltc_status* test_error(ltc_plugin* plugin, ltc_code code, uint32_t node, const char* message);
ltc_status* test_out_of_memory(ltc_plugin* plugin);

/* The message of a lost device, and the code of an error with that message or another. */
#define TEST_LOST "the cable was pulled"
ltc_code test_code_of(const char* message);

/* NULL when out of memory or threads. */
ltc_device* test_device_open(ltc_plugin* plugin);
void test_device_close(ltc_device* device);

/* NULL when out of memory. Freeing is at once, not in queue order. */
ltc_buffer* test_buffer_create(ltc_device* device, uint64_t bytes);
void test_buffer_free(ltc_buffer* buffer);

/* An empty task, with an event where asked and the device has events; NULL when out of memory. */
struct task* test_task_create(ltc_device* device, bool with_event);
void test_task_free(struct task* task);

/* Takes the task, and where it has an event hands that out through `done`. A synchronous device has run it on return; what it
 * then returns is why that failed, or NULL. */
const char* test_submit(ltc_device* device, struct task* task, ltc_event** done);

ltc_status* test_event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished);
void test_event_destroy(ltc_event* event);

/* The first event that the device was asked about, instead of `event`. It bears to be destroyed more than once. */
ltc_event* test_event_again(ltc_device* device, ltc_event* event);

#endif
