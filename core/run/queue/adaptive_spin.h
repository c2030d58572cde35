// Whether the thread that waits for the next piece of work should spin until it comes.
//
// Waking a thread costs who wakes it some 7 us, and the work 25 us and more until it begins; a spinning thread costs a
// processor. That is worth it while work comes at the rate of small steps and nobody else wants the processor.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/report/timeline.h"

namespace ltc {

// How often work comes to a queue. Guarded by the queue's mutex, except should_spin().
class SpinPolicy {
 public:
  static constexpr uint64_t kLongestGap = 200'000;  // ns between two pieces of work within which a thread spins for the second

  bool should_spin() const { return should_spin_.load(std::memory_order_relaxed); }  // work has been coming within kLongestGap

  // Times are those of timeline::now_ns().
  void note_idle(uint64_t now) { idle_since_ = now; }  // nothing is left to do
  void note_arrival(uint64_t now);                     // of work where nothing was left
  void note_preempted();                               // another thread took the processor of the one that spun

 private:
  // Once is chance, but where all processors are wanted nearly all are taken: then one piece of work in so many is waited for.
  static constexpr int kPreemptionCost = 50, kPreemptionBudget = 2 * kPreemptionCost;

  std::atomic<bool> should_spin_{false};
  uint64_t idle_since_ = 0;
  int preemptions_ = 0;  // kPreemptionCost each, less the pieces of work since
};

inline constexpr uint64_t kSpinForResult = 50'000;  // ns for which a thread that needs a result at once spins for it

// Leaves the processor's units to the thread beside it for a moment, if they share one.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or for `patience` ns. It yields now and then, so that a thread with work to do gets the processor;
// returns whether one took it. Not all the time: system calls one after the other made a program on the processor beside take
// 1.4 times as long (a virtual machine on AMD's Zen 3).
template <typename Done>
bool spin_until(uint64_t patience, Done done) {
  constexpr uint64_t kYieldInterval = 10'000;  // ns between yields
  constexpr uint64_t kTimeSlice = 50'000;      // ns: more than a system call and an interrupt, less than a turn of another thread
  constexpr int kPolls = 8;                    // between those at the clock: 0.1 to 0.4 us
  const uint64_t begin = timeline::now_ns();
  for (uint64_t now = begin, yielded = 0; now - begin <= patience;) {
    for (int look = 0; look < kPolls; ++look) {
      if (done()) return false;
      relax();
    }
    const uint64_t before = now;
    if (now - yielded >= kYieldInterval) {
      std::this_thread::yield();
      yielded = now;
    }
    now = timeline::now_ns();
    if (now - before > kTimeSlice) return true;
  }
  return false;
}

}  // namespace ltc
