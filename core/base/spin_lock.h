// A lock for sections of some hundred nanoseconds that are rarely contended: half the price of std::mutex when free.
//
// A waiter spins briefly, then yields: with fewer cores than threads the holder may not be running.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace ltc {

// Apart by so many bytes, what one thread writes often does not slow down another that reads something else.
inline constexpr size_t kCacheLine = 64;

class SpinLock {
 public:
  void lock() {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins > kSpins) std::this_thread::yield();
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 64;
  std::atomic<bool> locked_{false};
};

}  // namespace ltc
