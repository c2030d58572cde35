// How much device memory the host holds: the buffers that it was given and has not given back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "core/base/spin_lock.h"

namespace ltc {

// A quantity over time. `peak` is the largest `current` since the last reset_peak(); `added` and `removed` sum up since the last
// reset_sums().
struct MemoryStat {
  int64_t current = 0, peak = 0, added = 0, removed = 0;

  void change(int64_t by) {
    current += by;
    peak = std::max(peak, current);
    (by < 0 ? removed : added) += std::abs(by);
  }
};

// Threads: all members from any thread.
class MemoryAccount {
 public:
  struct Stats {
    MemoryStat bytes, buffers;
    int64_t retries = 0, refusals = 0;  // requests that were made again with the device idle; those that failed then too
    uint64_t plugin_peak_at_reset = 0;  // as reset_peak() was told
  };

  void add(size_t bytes) { change(static_cast<int64_t>(bytes), 1); }
  void remove(size_t bytes) { change(-static_cast<int64_t>(bytes), -1); }

  Stats stats() const {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void add_retry() {
    std::lock_guard lock(mutex_);
    ++stats_.retries;
  }
  void add_refusal() {
    std::lock_guard lock(mutex_);
    ++stats_.refusals;
  }
  // `plugin_peak`: bytes, the most that the plugin has had in use until now; it never forgets them.
  void reset_peak(uint64_t plugin_peak) {
    std::lock_guard lock(mutex_);
    for (MemoryStat* stat : {&stats_.bytes, &stats_.buffers}) stat->peak = stat->current;
    stats_.plugin_peak_at_reset = plugin_peak;
  }
  void reset_sums() {
    std::lock_guard lock(mutex_);
    for (MemoryStat* stat : {&stats_.bytes, &stats_.buffers}) stat->added = stat->removed = 0;
    stats_.retries = stats_.refusals = 0;
  }

 private:
  void change(int64_t bytes, int64_t buffers) {
    std::lock_guard lock(mutex_);
    stats_.bytes.change(bytes);
    stats_.buffers.change(buffers);
  }

  mutable SpinLock mutex_;
  Stats stats_;
};

}  // namespace ltc
