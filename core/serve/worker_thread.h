// A thread whose end can be waited for with a limit.
#pragma once

#include <future>

#include "core/serve/bounded_queue.h"

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

}  // namespace ltc::serve
