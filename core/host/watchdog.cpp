#include "core/host/watchdog.h"

#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/env.h"
#include "core/base/log.h"

namespace ltc::host {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A slot that may take long without a fault.
const char* excuse(std::string_view slot) {
  if (slot == "compile") return "; compiling may take minutes";
  if (slot == "event_wait" || slot == "device_close") return "; it waits for work of the device";
  return "";
}

double seconds(Clock::duration time) { return std::chrono::duration_cast<milliseconds>(time).count() / 1000.; }

// The call of a thread, and since when it is known.
struct Watched : CurrentCall {
  bool has_thread = false;
  uint64_t seen = 0;  // the number of the call
  Clock::time_point since;
  Clock::duration next{};  // logged when it has lasted so long
};

class Watchdog {
 public:
  // Leaked: threads end after static objects.
  static Watchdog& instance() {
    static auto* watchdog = new Watchdog();
    return *watchdog;
  }

  void start(milliseconds limit) {
    std::lock_guard lock(mutex_);
    limit_ = limit;
    changed_.notify_all();
    if (runs_ || limit.count() == 0) return;
    try {
      std::thread([this] { run(); }).detach();
      runs_ = true;
    } catch (const std::system_error& error) {
      log::info("calls of plugins are not watched: ", error.what());
    }
  }

  CurrentCall& add() {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find(calls_, false, &Watched::has_thread);
    Watched& one = found == calls_.end() ? calls_.emplace_back() : *found;
    one.has_thread = true;
    return one;
  }

  void give_back(CurrentCall& call) {
    std::lock_guard lock(mutex_);
    static_cast<Watched&>(call).has_thread = false;
  }

  void tell_return(CurrentCall& call) {
    std::lock_guard lock(mutex_);
    const auto& one = static_cast<const Watched&>(call);
    ++lines_;
    log::warn("[", *call.plugin, "] ", call.slot, " has returned after ", seconds(Clock::now() - one.since), " s");
  }

  size_t lines() {
    std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  void run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // they are for the program's own threads
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return limit_.count() > 0; });
      changed_.wait_for(lock, std::clamp(limit_ / 4, milliseconds(1), milliseconds(5000)));
      for (Watched& one : calls_) look(one);
    }
  }

  void look(Watched& one) noexcept {
    const char* const slot = one.slot.load(std::memory_order_acquire);
    const uint64_t number = one.number.load(std::memory_order_relaxed);
    const auto now = Clock::now();
    if (!slot || number != one.seen) {
      one.seen = number;
      one.since = now;
      one.next = limit_;
      return;
    }
    const auto time = now - one.since;
    if (time < one.next) return;
    one.next = 2 * time;
    one.told.store(number, std::memory_order_relaxed);
    ++lines_;
    try {
      const std::string line = location_text(one.line.load(std::memory_order_relaxed));
      log::warn("[", *one.plugin, "] ", slot, " has not returned for ", seconds(time), " s",
                line.empty() ? "" : ", called for " + line, excuse(slot), " (", env::kWatchdog.name, ")");
    } catch (...) {
      // No memory for a line of log.
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Watched> calls_;  // never moved, and used again by later threads
  milliseconds limit_{0};
  bool runs_ = false;
  size_t lines_ = 0;
};

}  // namespace

// Gives the thread's place back at its end. A call after that takes another, for good.
struct CurrentCall::Return {
  ~Return() { Watchdog::instance().give_back(*std::exchange(own, nullptr)); }
};

CurrentCall& CurrentCall::make() {
  own = &Watchdog::instance().add();
  thread_local const Return at_end;
  return *own;
}

void WatchedCall::tell_return(CurrentCall& call) noexcept {
  try {
    Watchdog::instance().tell_return(call);
  } catch (...) {
    // No memory for a line of log.
  }
}

void watch_calls() {
  static std::once_flag once;
  std::call_once(once, [] { set_watchdog_limit(std::chrono::seconds(std::stoll(env::get(env::kWatchdog)))); });
}

void set_watchdog_limit(milliseconds limit) { Watchdog::instance().start(limit); }
size_t watchdog_lines() { return Watchdog::instance().lines(); }

}  // namespace ltc::host
