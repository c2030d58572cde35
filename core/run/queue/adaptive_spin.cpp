#include "core/run/queue/adaptive_spin.h"

#include <algorithm>

namespace ltc {

void SpinPolicy::note_arrival(uint64_t now) {
  const bool is_close = now - idle_since_ <= kLongestGap;
  preemptions_ = std::max(0, preemptions_ - 1);
  should_spin_.store(is_close && preemptions_ < kPreemptionBudget, std::memory_order_relaxed);
}

void SpinPolicy::note_preempted() { preemptions_ += kPreemptionCost; }

}  // namespace ltc
