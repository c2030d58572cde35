#include "core/run/queue/pace.h"

#include <algorithm>

namespace ltc {

void Pace::note_arrival(uint64_t now) {
  const bool is_close = now - dry_since_ <= kStep;
  disturbances_ = std::max(0, disturbances_ - 1);
  quick_.store(is_close && disturbances_ < kTolerated, std::memory_order_relaxed);
}

void Pace::note_disturbed() { disturbances_ += kDisturbance; }

}  // namespace ltc
