// The events of a device.
#include "core/run/device/lazy_device.h"

namespace ltc {

std::shared_ptr<Event> LazyDevice::record_event(bool timed) {
  enter();
  auto event = std::make_shared<Event>(*this);
  if (!timed && !trace_state().is_capture && has_records()) {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
    return event;
  }
  sync(metrics::kMarkStep);
  event->fence_ = queue_.add_fence(timed);
  return event;
}

std::shared_ptr<Fence> Event::fence() {
  if (auto fence = device_.fence_of(*this)) return fence;
  device_.sync(metrics::kMarkStep);
  return device_.fence_of(*this);
}

bool Event::reached() {
  const auto fence = this->fence();
  return !fence || fence->reached();
}

void Event::wait() {
  if (const auto fence = this->fence()) fence->wait();
}

uint64_t Event::time_ns() {
  const auto fence = this->fence();
  return fence ? fence->time_ns() : 0;
}

// Behind the step, which has been queued.
void LazyDevice::queue_events(PendingStep& step) {
  for (const auto& one : step.events) {
    const auto event = one.lock();
    if (!event) continue;
    auto fence = queue_.add_fence();
    std::lock_guard lock(mutex_);
    event->fence_ = std::move(fence);
  }
  step.events.clear();
}

std::shared_ptr<Fence> LazyDevice::fence_of(const Event& event) {
  std::lock_guard lock(mutex_);
  return event.fence_;
}

}  // namespace ltc
