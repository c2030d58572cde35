// Waits of the program's threads that a signal can end: Ctrl-C.
//
// A thread that waits for the device looks now and then whether it is wanted elsewhere. The work that it waited for goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "core/base/api.h"

namespace ltc {

inline constexpr std::chrono::milliseconds kWaitSlice{50};  // between two looks

// Throws what is to end the calling thread's wait, if anything is. Called with no lock held, in any thread. Installed by the part
// of the core that knows signals; null: nothing ends a wait.
using CheckInterrupt = void (*)();
LTC_API void set_check_interrupt(CheckInterrupt check);
LTC_API void check_interrupt();

// Waits until done(), which `changed` tells. Returns and throws with the lock held; throws what check_interrupt() throws.
template <typename Done>
void wait_in_slices(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Done done) {
  while (!changed.wait_for(lock, kWaitSlice, done)) {
    lock.unlock();
    try {
      check_interrupt();
    } catch (...) {
      lock.lock();
      throw;
    }
    lock.lock();
  }
}

inline bool try_lock_for_a_slice(std::unique_lock<std::timed_mutex>& lock) {
#if defined(__SANITIZE_THREAD__)
  return lock.try_lock_until(std::chrono::system_clock::now() + kWaitSlice);  // GCC 12's does not know pthread_mutex_clocklock
#else
  return lock.try_lock_for(kWaitSlice);
#endif
}

// The mutex, locked; throws what check_interrupt() throws.
inline std::unique_lock<std::timed_mutex> lock_in_slices(std::timed_mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  while (!lock && !try_lock_for_a_slice(lock)) check_interrupt();
  return lock;
}

}  // namespace ltc
