// Names the calls of plugins that take long.
//
// One thread looks now and then at what each thread of the process is calling. A call that has not returned after LTC_WATCHDOG
// seconds is logged with the plugin, the slot and the user's line where it is known; once more each time it has lasted twice as
// long, since compiling may take minutes; and when it returns. A call pays a few relaxed stores and reads no clock.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/api.h"
#include "core/ir/location.h"

namespace ltc::host {

// The call in which a thread is. That thread writes it, but for `told`.
struct CurrentCall {
  std::atomic<const char*> slot{nullptr};  // a literal; null: no call
  std::atomic<const std::string*> plugin{nullptr};
  std::atomic<uint64_t> number{0};  // of the thread's calls
  std::atomic<uint64_t> told{0};    // the number of the last one that was logged
  std::atomic<LocationId> line{kNoLocation};

  static CurrentCall& of_this_thread() {
    CurrentCall* const call = own;
    if (!call) [[unlikely]]
      return make();
    return *call;
  }
  // Where this thread keeps it from now on, for a child process that its parent looks at. `place` must outlive the thread.
  static void keep_at(CurrentCall& place) { own = &place; }

 private:
  static inline LTC_THREAD_LOCAL constinit CurrentCall* own = nullptr;
  [[gnu::cold]] static CurrentCall& make();
  struct Return;
};

// A call, for as long as it lives. `plugin`: a name that stays for the life of the process.
class WatchedCall {
 public:
  LTC_ALWAYS_INLINE WatchedCall(const std::string& plugin, const char* slot) : call_(CurrentCall::of_this_thread()) {
    call_.plugin.store(&plugin, std::memory_order_relaxed);
    call_.number.store(call_.number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    call_.slot.store(slot, std::memory_order_release);
  }
  LTC_ALWAYS_INLINE ~WatchedCall() {
    if (call_.told.load(std::memory_order_relaxed) == call_.number.load(std::memory_order_relaxed)) [[unlikely]]
      tell_return(call_);
    call_.slot.store(nullptr, std::memory_order_relaxed);
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

 private:
  CurrentCall& call_;
  [[gnu::cold]] static void tell_return(CurrentCall& call) noexcept;
};

// The user's line that this thread's calls are about, for as long as it lives.
class CallLine {
 public:
  explicit CallLine(LocationId line) : call_(CurrentCall::of_this_thread()), before_(call_.line.load(std::memory_order_relaxed)) {
    call_.line.store(line, std::memory_order_relaxed);
  }
  ~CallLine() { call_.line.store(before_, std::memory_order_relaxed); }
  CallLine(const CallLine&) = delete;
  CallLine& operator=(const CallLine&) = delete;

 private:
  CurrentCall& call_;
  const LocationId before_;
};

// Starts the thread with the limit of LTC_WATCHDOG; the second time it does nothing. Where there is no thread to be had, nothing
// is watched.
void watch_calls();

// For tests: another limit; and how many lines were logged so far.
void set_watchdog_limit(std::chrono::milliseconds limit);
size_t watchdog_lines();

}  // namespace ltc::host
