#include "pjrt/queue.h"

#include <chrono>

namespace ltc::pjrt {

// The state of a callback; it may come after the device was closed.
struct Queue::Pending {
  std::shared_ptr<Queue> queue;
  const Library& library;
  PJRT_Event* event;
  Ticket ticket;
  Verdict verdict;

  static void on_ready(PJRT_Error* error, void* argument) {
    const std::unique_ptr<Pending> self(static_cast<Pending*>(argument));
    Outcome outcome;
    try {
      if (!error && self->verdict) outcome = self->verdict();
    } catch (...) {
      outcome = plugin::current_error();
    }
    if (error) outcome = self->library.take(error);
    auto args = PJRT_ARGS(Event_Destroy);
    args.event = self->event;
    PJRT_TRY(self->library, Event_Destroy, args);
    self->queue->finish(self->ticket, std::move(outcome));
  }
};

Ticket Queue::submit(const Library& library, PJRT_Event* event, Verdict verdict) {
  Ticket ticket{0, std::make_shared<Outcome>()};
  auto args = PJRT_ARGS(Event_OnReady);
  args.event = event;
  args.callback = Pending::on_ready;
  if (event) args.user_arg = new Pending{shared_from_this(), library, event, ticket, std::move(verdict)};
  {
    const std::lock_guard lock(mutex_);
    over_.push_back(false);
    ticket.end = begin_ + over_.size();
  }
  if (!event) {
    finish(ticket, {});
    return ticket;
  }
  static_cast<Pending*>(args.user_arg)->ticket = ticket;
  if (PJRT_Error* error = library.api().PJRT_Event_OnReady(&args)) Pending::on_ready(error, args.user_arg);
  return ticket;
}

void Queue::finish(const Ticket& ticket, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  *ticket.outcome = std::move(outcome);
  over_[ticket.end - 1 - begin_] = true;
  for (; !over_.empty() && over_.front(); ++begin_) over_.pop_front();
  changed_.notify_all();
}

bool Queue::wait(uint64_t end, uint64_t timeout_ns) {
  constexpr uint64_t kLongest = uint64_t{1} << 60;  // that a clock can count
  const auto is_over = [&] { return begin_ >= end; };
  std::unique_lock lock(mutex_);
  if (timeout_ns < kLongest) return changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_over);
  changed_.wait(lock, is_over);
  return true;
}

Outcome Queue::outcome(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  return *ticket.outcome;
}

void Queue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return over_.empty(); });
}

}  // namespace ltc::pjrt
