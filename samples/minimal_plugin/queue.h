/* The order in which a device does its work. Built with MINIMAL_ASYNC: a thread per device, and events. Else there is no queue:
 * the plugin does each piece of work when it is submitted. */
#ifndef MINIMAL_QUEUE_H
#define MINIMAL_QUEUE_H

#include "minimal.h"

/* A piece of work; the first field of what it needs. `run` frees all of that, and says in `failure` why it failed. */
struct work {
  struct work* next;
  bool (*run)(struct work* work, struct failure* failure);
  ltc_event* event; /* NULL: nobody waits for it */
};

struct queue;
struct queue* queue_create(const ltc_host_api* host); /* NULL when out of memory or threads */
void queue_destroy(struct queue* queue);              /* after the work that is left */

/* Takes the work. `done` out, may be NULL: the event. False when out of memory: then nothing was taken. */
bool queue_push(struct queue* queue, struct work* work, ltc_event** done);

ltc_status* queue_event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished);
void queue_event_destroy(ltc_event* event);
ltc_status* queue_event_good_outputs(ltc_event* event, size_t output_count, uint8_t* good);

#endif
