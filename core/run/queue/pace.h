// Whether the thread that waits for the next piece of work should stay awake until it comes.
//
// Waking a thread costs who wakes it some 7 us, and the work 25 us and more until it begins; a thread that stays awake costs a
// processor. That is worth it while work comes at the pace of small steps and nobody else wants the processor.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "core/report/timeline.h"

namespace ltc {

// How often work comes to a queue. Guarded by the queue's mutex, except quick().
class Pace {
 public:
  static constexpr uint64_t kStep = 200'000;  // ns between two pieces of work within which a thread stays awake for the second

  bool quick() const { return quick_.load(std::memory_order_relaxed); }  // work has been coming within kStep

  // Times are those of timeline::now_ns().
  void note_dry(uint64_t now) { dry_since_ = now; }  // nothing is left to do
  void note_arrival(uint64_t now);                   // of work where nothing was left
  void note_disturbed();                             // another thread took the processor of the one that stayed awake

 private:
  // Once is chance, but where all processors are wanted nearly all are taken: then one piece of work in so many is waited for.
  static constexpr int kDisturbance = 50, kTolerated = 2 * kDisturbance;

  std::atomic<bool> quick_{false};
  uint64_t dry_since_ = 0;
  int disturbances_ = 0;  // kDisturbance each, less the pieces of work since
};

inline constexpr uint64_t kAwaitResult = 50'000;  // ns for which who needs a result at once stays awake for it

// Leaves the processor's units to the thread beside it for a moment, if they share one.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits, awake, until done() or for `patience` ns. It yields now and then, so that a thread with work to do gets the processor;
// returns whether one took it. Not all the time: system calls one after the other made a program on the processor beside take
// 1.4 times as long (a virtual machine on AMD's Zen 3).
template <typename Done>
bool stay_awake(uint64_t patience, Done done) {
  constexpr uint64_t kGiveWay = 10'000;  // ns between yields
  constexpr uint64_t kTurn = 50'000;     // ns: more than a system call and an interrupt, less than a turn of another thread
  constexpr int kLooks = 8;              // between those at the clock: 0.1 to 0.4 us
  const uint64_t begin = timeline::now_ns();
  for (uint64_t now = begin, yielded = 0; now - begin <= patience;) {
    for (int look = 0; look < kLooks; ++look) {
      if (done()) return false;
      relax();
    }
    const uint64_t before = now;
    if (now - yielded >= kGiveWay) {
      std::this_thread::yield();
      yielded = now;
    }
    now = timeline::now_ns();
    if (now - before > kTurn) return true;
  }
  return false;
}

}  // namespace ltc
