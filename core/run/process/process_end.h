// The end of the process while other threads still record. Python takes its lock away from them then and ends them in the middle
// of C++ code, which aborts the process; so they are stopped before, where they hold nothing.
#pragma once

#include <atomic>
#include <chrono>

#include "core/base/api.h"

namespace ltc {

namespace detail {
extern std::atomic<bool> process_is_ending;
}

// A thread that has made a tensor counts from here to its end. Once per thread.
void count_this_thread();

// The calling thread is the core's own and ends soon: whoever ends the process joins it. It never stops and does not count.
void exempt_this_thread();

// From now on every other thread stops for ever at the next op that it records or barrier that it asks for, or when it comes back
// from what takes long. Returns when all that were counted have stopped, or after `at_most`: some may be busy with something
// else. It waits longer for a thread that is in a LongCall. `before_stopping` is called in each thread that stops, to give back
// what others wait for.
LTC_API void stop_other_threads(void (*before_stopping)(), std::chrono::milliseconds at_most);

inline bool process_is_ending() { return detail::process_is_ending.load(std::memory_order_relaxed); }
void stop_this_thread();  // unless it is exempt, or the one that ends the process

// While one lives, the calling thread compiles, waits, or does whatever else takes long. Declared before any lock: the thread may
// stop for ever in the destructor.
class LTC_API LongCall {
 public:
  LongCall();
  ~LongCall();
  LongCall(const LongCall&) = delete;
  LongCall& operator=(const LongCall&) = delete;
};

}  // namespace ltc
