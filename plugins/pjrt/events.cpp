// The completion of work, as one queue in order: PJRT orders work by the buffers that it uses.
#include "pjrt/objects.h"

namespace ltc::pjrt {

// The state of a callback, which may come in any order.
struct Queue::Pending {
  const Library& library;
  PJRT_Event* event;
  Verdict verdict;
  std::shared_ptr<Queue> queue;
  std::promise<void> promise = {};
  std::exception_ptr error = {};
  bool is_over = false;

  static void on_ready(PJRT_Error* error, void* argument) {
    Pending& self = *static_cast<Pending*>(argument);
    try {
      self.library.check(error);
      if (self.verdict) self.verdict();
    } catch (...) {
      self.error = std::current_exception();
    }
    (void)PJRT_TRY(self.library, Event_Destroy, .event = self.event);
    const std::shared_ptr<Queue> queue = self.queue;
    queue->finish(self);
  }
};

Completion Queue::submit(const Library& library, PJRT_Event* event, Verdict verdict) {
  const auto pending = std::make_shared<Pending>(Pending{library, event, std::move(verdict), shared_from_this()});
  const Completion completion = pending->promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    pending_.push_back(pending);
    last_ = completion;
  }
  auto args = PJRT_STRUCT(Event_OnReady_Args, .event = event, .callback = Pending::on_ready, .user_arg = pending.get());
  if (PJRT_Error* error = library.api().PJRT_Event_OnReady(&args)) Pending::on_ready(error, pending.get());
  return completion;
}

void Queue::finish(Pending& pending) {
  const std::lock_guard lock(mutex_);
  pending.is_over = true;
  for (; !pending_.empty() && pending_.front()->is_over; pending_.pop_front()) {
    Pending& first = *pending_.front();
    first.error ? first.promise.set_exception(first.error) : first.promise.set_value();
  }
}

void event_wait(ltc_event* event, uint64_t timeout_ns, bool& finished) {
  finished = event->over.wait_for(plugin::limit_of(timeout_ns)) == std::future_status::ready;
  if (finished) event->over.get();
}

void event_good_outputs(ltc_event* event, size_t output_count, uint8_t* good) {
  try {
    event->over.get();
  } catch (const Failure& failure) {
    failure.error().tell_good_outputs(output_count, good);
  }
}

}  // namespace ltc::pjrt
