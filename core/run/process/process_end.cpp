#include "core/run/process/process_end.h"

#include <unistd.h>

#include <thread>

#include "core/run/process/interrupt.h"

namespace ltc {

namespace detail {
std::atomic<bool> process_is_ending{false};
}

namespace {

constexpr std::chrono::seconds kLongCall{10};  // after which the end of one is not waited for

std::atomic<int> g_recording{0}, g_stopped{0}, g_in_long_calls{0};
std::atomic<void (*)()> g_before_stopping{nullptr};
thread_local bool t_is_exempt = false;

struct Counted {
  Counted() { ++g_recording; }
  ~Counted() { --g_recording; }
};

thread_local bool t_is_counted = false;
LTC_THREAD_LOCAL constinit int t_long_calls = 0;  // that this thread is in, one inside the other

}  // namespace

void count_this_thread() {
  if (t_is_exempt) return;
  thread_local const Counted counted;
  t_is_counted = true;
}

void exempt_this_thread() { t_is_exempt = true; }

void stop_other_threads(void (*before_stopping)(), std::chrono::milliseconds at_most) {
  t_is_exempt = true;
  g_before_stopping = before_stopping;
  detail::process_is_ending = true;
  const auto begin = std::chrono::steady_clock::now();
  const auto is_worth_waiting = [&] {
    const auto waited = std::chrono::steady_clock::now() - begin;
    return waited < at_most || (waited < kLongCall && g_in_long_calls > (t_long_calls > 0));
  };
  while (g_stopped < g_recording - t_is_counted && is_worth_waiting()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check_interrupt();
  }
}

void stop_this_thread() {
  if (t_is_exempt) return;
  if (t_is_counted) ++g_stopped;
  if (t_long_calls > 0) --g_in_long_calls;
  g_before_stopping.load()();
  for (;;) pause();
}

LongCall::LongCall() {
  if (t_long_calls++ == 0) ++g_in_long_calls;
}

LongCall::~LongCall() {
  if (process_is_ending()) [[unlikely]]
    stop_this_thread();
  if (--t_long_calls == 0) --g_in_long_calls;
}

}  // namespace ltc
