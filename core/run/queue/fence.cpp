#include "core/run/queue/fence.h"

#include <optional>

#include "core/report/timeline.h"
#include "core/run/process/fork.h"
#include "core/run/process/interrupt.h"
#include "core/run/process/process_end.h"
#include "core/run/queue/adaptive_spin.h"
#include "core/run/queue/buffer.h"

namespace ltc {

void Fence::arrive(std::shared_ptr<Completion> newest) {
  std::lock_guard lock(mutex_);
  newest_ = std::move(newest);
  time_ns_ = timeline::now_ns();
}

void Fence::announce() {
  std::lock_guard lock(mutex_);
  is_passed_ = true;
  passed_.notify_all();
}

bool Fence::reached() {
  refuse_after_fork();
  std::lock_guard lock(mutex_);
  if (!is_passed_) return false;
  if (newest_ && newest_->is_over()) newest_ = nullptr;
  return !newest_;
}

void Fence::wait() {
  LongCall call;
  refuse_after_fork();
  std::shared_ptr<Completion> newest;
  {
    std::optional<host::Waiting> waiting;
    if (!is_passed_) {
      waiting.emplace(device_);
      spin_until(kSpinForResult, [&] { return is_passed_.load(); });
    }
    std::unique_lock lock(mutex_);
    wait_in_slices(passed_, lock, [&] { return is_passed_.load(); });
    newest = newest_;
  }
  if (!newest) return;
  spin_until(kSpinForResult, [&] { return newest->is_over(); });
  while (!newest->is_over_within(kWaitSlice)) check_interrupt();
}

uint64_t Fence::time_ns() {
  std::lock_guard lock(mutex_);
  return time_ns_;
}

}  // namespace ltc
