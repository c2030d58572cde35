// How far a program may be ahead of its device: how many runs are queued or running before who submits one more waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ltc {

// Not thread-safe: guarded by the queue's mutex.
//
// Long runs are few, for the sake of memory; short ones may be more. A thread that finds no room waits until half of it is free,
// and then submits several in one go: waking it for each takes longer than some runs do, and kernels that use all processors wait
// for the one on which a step is being recorded.
class InFlightLimit {
 public:
  static constexpr int64_t kAhead = 100'000'000;  // ns that the runs are expected to take together
  static constexpr size_t kMostRuns = 32;

  // `runs` of any length have room, at least 1.
  explicit InFlightLimit(size_t runs) : runs_(runs) {}

  bool has_room() const { return fits(kMostRuns, kAhead); }
  bool is_half_free() const { return fits(kMostRuns / 2, kAhead / 2); }

  // A run that is expected to take so long, INT64_MAX if nobody knows. Returns what to remove when it is done.
  int64_t add(int64_t expected_ns) {
    const int64_t counted = std::min(expected_ns, kAhead);
    ++inside_, inside_ns_ += counted;
    return counted;
  }
  void remove(int64_t counted) { --inside_, inside_ns_ -= counted; }

 private:
  bool fits(size_t runs, int64_t ns) const { return inside_ < runs_ || (inside_ < runs && inside_ns_ < ns); }

  const size_t runs_;
  size_t inside_ = 0;
  int64_t inside_ns_ = 0;
};

}  // namespace ltc
