// A shared mutex whose readers pay two plain stores. Its writer makes every thread of the process pass a barrier. Use it for data
// that each call reads and that rarely changes. The scheme is that of asymmetric fences (Linux: membarrier(2); C++: P1202).
//
// The thread that locked unlocks, and no thread locks one twice. Where the system has no such barrier, readers take a
// std::shared_mutex.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

#include "core/base/api.h"
#include "core/base/spin_lock.h"

namespace ltc {

class AsymmetricMutex {
 public:
  AsymmetricMutex();

  // Waits until no reader is left, and keeps others out.
  void lock();
  void unlock();

  LTC_ALWAYS_INLINE void lock_shared() {
    Reader* const reader = Reader::own;
    if (!reader || reader->held.load(std::memory_order_relaxed)) [[unlikely]]
      return lock_shared_otherwise();
    reader->held.store(this, std::memory_order_release);  // the next writer of a mutex that this thread left sees it leave
    std::atomic_signal_fence(std::memory_order_seq_cst);  // lock() brings the fence for processors
    if (keeps_out_.load(std::memory_order_acquire)) [[unlikely]]
      lock_shared_otherwise();
  }

  LTC_ALWAYS_INLINE void unlock_shared() {
    Reader* const reader = Reader::own;
    if (!reader || reader->held.load(std::memory_order_relaxed) != this) [[unlikely]]
      return mutex_.unlock_shared();
    reader->held.store(nullptr, std::memory_order_release);
  }

 private:
  // One per thread. Only its thread writes `held`.
  struct alignas(kCacheLine) Reader {
    std::atomic<const AsymmetricMutex*> held{nullptr};  // the mutex that the thread holds without `mutex_`
    bool has_thread = false;

    static inline LTC_THREAD_LOCAL constinit Reader* own = nullptr;  // null before the first lock
    static void make_own();
  };
  struct Readers;
  // For a thread's first lock, for one that reads under another mutex meanwhile, and for one that a writer keeps out.
  void lock_shared_otherwise();

  std::atomic<bool> keeps_out_;  // readers take mutex_
  std::mutex turn_;              // the writer's, through which readers of mutex_ pass: it may prefer readers for ever
  std::shared_mutex mutex_;
};

// A reader, for as long as it lives.
class AsymmetricReader {
 public:
  LTC_ALWAYS_INLINE explicit AsymmetricReader(AsymmetricMutex& mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  LTC_ALWAYS_INLINE ~AsymmetricReader() { mutex_.unlock_shared(); }
  AsymmetricReader(const AsymmetricReader&) = delete;
  AsymmetricReader& operator=(const AsymmetricReader&) = delete;

 private:
  AsymmetricMutex& mutex_;
};

}  // namespace ltc
