// A forked child has the parent's handles but not its threads: it must neither use nor give back anything of the device.
#pragma once

#include <atomic>

#include "core/base/api.h"

namespace ltc {

namespace detail {
extern std::atomic<bool> forked;
}

void watch_forks();      // from the first use of a device on; idempotent
LTC_API bool forked();   // whether this process is a child forked after that
void fail_after_fork();  // throws Error(kUnsupported)

// Before every op: nanoseconds count.
inline void refuse_after_fork() {
  if (detail::forked.load(std::memory_order_relaxed)) [[unlikely]]
    fail_after_fork();
}

}  // namespace ltc
