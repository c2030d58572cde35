#include "core/run/device/event.h"

#include "core/run/device/lazy_device.h"

namespace ltc {

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

}  // namespace ltc
