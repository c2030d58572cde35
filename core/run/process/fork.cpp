#include "core/run/process/fork.h"

#include <pthread.h>

#include <mutex>

#include "core/base/error.h"

namespace ltc {

namespace detail {
std::atomic<bool> forked{false};
}

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { detail::forked = true; }); });
}

bool forked() { return detail::forked.load(std::memory_order_relaxed); }

void fail_after_fork() { fail(Code::kUnsupported, "cannot use ltc in a forked process, use the spawn start method"); }

}  // namespace ltc
