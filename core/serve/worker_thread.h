// A thread whose end can be waited for with a limit.
#pragma once

#include <algorithm>
#include <future>

#include "core/serve/request_metrics.h"

namespace ltc::serve {

// Threads: one at a time. Its destructor waits for the thread.
class WorkerThread {
 public:
  // Called once. An exception of `work` ends the process.
  template <typename Work>
  void start(Work work) {
    end_ = std::async(std::launch::async, [work = std::move(work)]() noexcept { work(); });
  }

  // Whether the thread ends by that time.
  bool ends_by(Clock::time_point until) const {
    if (until != Clock::time_point::max()) return end_.wait_until(until) == std::future_status::ready;
    end_.wait();  // waiting until `max` would overflow
    return true;
  }

 private:
  std::future<void> end_;
};

struct RunningWorker {
  RunTimer timer;
  WorkerThread thread;
};

// Whether all of the workers, given as pointers, end by that time.
template <typename Workers>
bool all_end_by(const Workers& workers, Clock::time_point until) {
  return std::ranges::all_of(workers, [until](const auto& worker) { return worker->thread.ends_by(until); });
}

// How long the oldest of their calls has been running; 0 where none does.
template <typename Workers>
Clock::duration longest_run(const Workers& workers) {
  Clock::duration longest{0};
  for (const auto& worker : workers) longest = std::max(longest, worker->timer.running());
  return longest;
}

}  // namespace ltc::serve
