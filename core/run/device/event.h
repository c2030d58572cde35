// A point in a device's work, as torch.Event is: behind what was recorded before.
//
// To record one does not end the step. To ask or to wait does, if the point is in a step that is still being recorded. Then it is
// reached when all of that step has run, with what was recorded behind the point.
// Threads: any. Gone before the device.
#pragma once

#include <memory>

#include "core/base/api.h"
#include "core/run/queue/fence.h"

namespace ltc {

class LazyDevice;

class LTC_API Event {
 public:
  explicit Event(LazyDevice& device) : device_(device) {}

  bool reached();
  void wait();
  // When it was reached, on the clock of timeline::now_ns(). Only of one with time, and once it is reached.
  uint64_t time_ns();

 private:
  friend class LazyDevice;
  std::shared_ptr<Fence> fence();  // null if the queue has refused the step

  LazyDevice& device_;
  std::shared_ptr<Fence> fence_;  // null while the step is recorded; guarded by the device's mutex
};

}  // namespace ltc
