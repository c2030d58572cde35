#include "core/run/fork.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "core/base/error.h"

namespace ltc {
namespace {
std::atomic<bool> g_forked{false};
}

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, [] { g_forked = true; }); });
}

bool forked() { return g_forked.load(std::memory_order_relaxed); }

void refuse_after_fork() {
  if (forked()) [[unlikely]]
    fail(Code::kUnsupported, "cannot use ltc in a forked process, use the spawn start method");
}

}  // namespace ltc
