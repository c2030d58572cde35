// The history of the devices' memory: buffers that came and went, and requests that were refused. Off by default, then one
// branch per buffer.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/api.h"
#include "core/ir/location.h"

namespace ltc::memory_history {

struct Event {
  enum Kind : uint8_t { kAlloc, kFree, kRefused };
  Kind kind;
  LocationId where;         // the user's line of the value; kNoLocation where it was recorded before start()
  const void* memory;       // the DeviceMemory
  uint64_t address, bytes;  // DeviceMemory::Held's; of a refused request only the bytes
  uint64_t free_bytes = 0;  // of a device that refused, by its own account; 0: unknown
  uint64_t time_us = 0;     // since 1970
};

// Keeps the last `most_events` of all devices together; earlier ones too, unless it `forgets` them.
LTC_API void start(size_t most_events, bool forgets);
LTC_API void stop();  // keeps the events

namespace detail {
extern std::atomic<bool> enabled;
extern std::mutex mutex;
}  // namespace detail

inline bool enabled() { return detail::enabled.load(std::memory_order_relaxed); }

// While one lives, no other thread changes the history: an event and the account of the memory change together.
class Lock {
 public:
  enum When : uint8_t { kWhereOn, kAlways };  // the first holds nothing where the history is off

  explicit Lock(When when) {
    if (when == kAlways || enabled()) [[unlikely]]
      lock_ = std::unique_lock(detail::mutex);
  }
  explicit operator bool() const { return lock_.owns_lock(); }
  void add(Event event);              // now; `time_us` need not be set
  std::vector<Event> events() const;  // in order

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace ltc::memory_history
