#include "core/run/marker.h"

#include "core/base/log.h"
#include "core/run/buffer.h"
#include "core/run/fork.h"
#include "core/run/timeline.h"

namespace ltc {
namespace {

// Whether the work is over; one that failed is.
template <typename Ask>
bool is_over(Ask ask) {
  try {
    return ask();
  } catch (const std::exception& error) {
    log::debug("a run failed: ", error.what());
    return true;
  }
}

}  // namespace

void Marker::arrive(std::shared_ptr<Completion> newest) {
  std::lock_guard lock(mutex_);
  newest_ = std::move(newest);
  time_ns_ = timeline::now_ns();
}

void Marker::announce() {
  std::lock_guard lock(mutex_);
  is_passed_ = true;
  passed_.notify_all();
}

bool Marker::reached() {
  refuse_after_fork();
  std::lock_guard lock(mutex_);
  if (!is_passed_) return false;
  if (newest_ && is_over([&] { return newest_->finished(); })) newest_ = nullptr;
  return !newest_;
}

void Marker::wait() {
  refuse_after_fork();
  std::shared_ptr<Completion> newest;
  {
    std::unique_lock lock(mutex_);
    if (!is_passed_) {
      host::Waiting waiting(device_);
      passed_.wait(lock, [&] { return is_passed_; });
    }
    newest = newest_;
  }
  if (newest) is_over([&] { return newest->wait(), true; });
}

uint64_t Marker::time_ns() {
  std::lock_guard lock(mutex_);
  return time_ns_;
}

}  // namespace ltc
