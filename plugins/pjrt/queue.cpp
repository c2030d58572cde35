#include "pjrt/queue.h"

#include <chrono>

namespace ltc::pjrt {

// Keeps what a callback needs, which may come after the device was closed.
struct Queue::Pending {
  std::shared_ptr<Queue> queue;
  const Library& library;
  PJRT_Event* event;
  Ticket ticket;
  Verdict verdict;

  ~Pending() {
    auto args = PJRT_ARGS(Event_Destroy);
    args.event = event;
    if (PJRT_Error* error = library.api().PJRT_Event_Destroy(&args)) (void)library.take(error);
  }
  static void on_ready(PJRT_Error* error, void* argument) {
    const std::unique_ptr<Pending> self(static_cast<Pending*>(argument));
    std::optional<abi::Error> failure;
    if (error) {
      failure = self->library.take(error);
    } else if (self->verdict) {
      failure = self->verdict();
    }
    self->queue->finish(self->ticket, std::move(failure));
  }
};

Ticket Queue::submit(const Library& library, PJRT_Event* event, Verdict verdict) {
  Ticket ticket{0, std::make_shared<std::optional<abi::Error>>()};
  {
    const std::lock_guard lock(mutex_);
    ticket.number = first_ + over_.size();
    over_.push_back(false);
  }
  if (!event) {
    finish(ticket, verdict ? verdict() : std::nullopt);
    return ticket;
  }
  auto args = PJRT_ARGS(Event_OnReady);
  args.event = event;
  args.callback = Pending::on_ready;
  args.user_arg = new Pending{shared_from_this(), library, event, ticket, std::move(verdict)};
  if (PJRT_Error* error = library.api().PJRT_Event_OnReady(&args)) Pending::on_ready(error, args.user_arg);
  return ticket;
}

Ticket Queue::mark() {
  const std::lock_guard lock(mutex_);
  return {first_ + over_.size(), nullptr};
}

void Queue::finish(const Ticket& ticket, std::optional<abi::Error> error) {
  const std::lock_guard lock(mutex_);
  *ticket.error = std::move(error);
  over_[ticket.number - first_] = true;
  for (; !over_.empty() && over_.front(); ++first_) over_.pop_front();
  changed_.notify_all();
}

bool Queue::wait(const Ticket& ticket, uint64_t timeout_ns) {
  // A mark stands before the next number, other work behind its own.
  const uint64_t wanted = ticket.number + (ticket.error ? 1 : 0);
  const auto is_over = [&] { return first_ >= wanted; };
  std::unique_lock lock(mutex_);
  if (timeout_ns == 0 || is_over()) return is_over();
  constexpr uint64_t kLongest = 1'000'000'000ull * 3600 * 24 * 365;  // what a clock can count
  if (timeout_ns < kLongest) return changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), is_over);
  changed_.wait(lock, is_over);
  return true;
}

std::optional<abi::Error> Queue::error(const Ticket& ticket) {
  const std::lock_guard lock(mutex_);
  return ticket.error ? *ticket.error : std::nullopt;
}

}  // namespace ltc::pjrt
