#include "core/torch/distributed/idle_steps.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/report/metrics.h"
#include "core/run/process/process_end.h"
#include "core/torch/distributed/groups.h"

namespace ltc::collectives {
namespace {

constexpr std::chrono::milliseconds kIdleLook{250};
constexpr int kQuietLooks = 2;   // that find the trace as it was, before its step ends
constexpr int kLooksAwake = 20;  // that find no collective, before the thread sleeps until there is one

void end_step(LazyDevice& device) {
  try {
    device.sync(metrics::kIdle);
  } catch (const std::exception& error) {
    log::info("a step with a collective failed: ", error.what());
  }
}

// Whether collectives of plugins may be under way, of ranks that mean the same as far as is known.
bool has_agreed_groups() {
  try {
    return look_at_groups();
  } catch (const std::exception& error) {
    log::info("the ranks of a process group were not compared: ", error.what());
    return true;
  }
}

}  // namespace

IdleSteps& IdleSteps::instance() {
  static auto* instance = new IdleSteps();  // the thread may be in a step at the end of the process
  return *instance;
}

void IdleSteps::note_collective(LazyDevice& device) {
  const std::lock_guard lock(mutex_);
  pending_.insert_or_assign(&device, Pending{device.trace_extent()});
  if (!thread_.joinable() && !stopping_) thread_ = std::thread([this] { watch(); });
  if (is_asleep_) changed_.notify_all();
}

void IdleSteps::end_all() {
  std::map<LazyDevice*, Pending> pending;
  {
    const std::lock_guard lock(mutex_);
    pending.swap(pending_);
  }
  for (const auto& [device, one] : pending) {
    if (device->trace_extent().epoch == one.extent.epoch) end_step(*device);
  }
}

void IdleSteps::rest() {
  if (process_is_ending()) return;  // the thread may have been stopped for ever
  std::unique_lock lock(mutex_);
  stopping_ = true;
  std::thread thread = std::move(thread_);
  changed_.notify_all();
  lock.unlock();
  if (thread.joinable()) thread.join();
  lock.lock();
  stopping_ = false;
}

void IdleSteps::watch() {
  pthread_setname_np(pthread_self(), "ltc_idle");  // for debuggers and profilers
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    is_asleep_ = pending_.empty() && ++empty_looks_ > kLooksAwake;
    if (is_asleep_)
      changed_.wait(lock, [&] { return stopping_ || !pending_.empty(); });
    else
      changed_.wait_for(lock, kIdleLook, [&] { return stopping_; });
    is_asleep_ = false;
    if (stopping_ || process_is_ending()) return;
    lock.unlock();
    look();
    const bool may_work = has_agreed_groups();
    lock.lock();
    if (may_work || !pending_.empty()) empty_looks_ = 0;
  }
}

void IdleSteps::look() {
  std::vector<LazyDevice*> idle;
  {
    const std::lock_guard lock(mutex_);
    for (auto entry = pending_.begin(); entry != pending_.end();) {
      auto& [device, one] = *entry;
      const TraceExtent now = device->trace_extent();
      const bool has_ended = now.epoch != one.extent.epoch;
      one.quiet_looks = now == one.extent ? one.quiet_looks + 1 : 0;
      one.extent = now;
      if (one.quiet_looks == kQuietLooks) idle.push_back(device);
      entry = has_ended || one.quiet_looks == kQuietLooks ? pending_.erase(entry) : std::next(entry);
    }
  }
  for (LazyDevice* device : idle) end_step(*device);
}

}  // namespace ltc::collectives
