#include "core/run/process_end.h"

#include <unistd.h>

#include <thread>

namespace ltc {

namespace detail {
std::atomic<bool> process_is_ending{false};
}

namespace {

std::atomic<int> g_recording{0}, g_stopped{0};
std::atomic<void (*)()> g_before_stopping{nullptr};
thread_local bool t_ends_process = false;

struct Counted {
  Counted() { ++g_recording; }
  ~Counted() { --g_recording; }
};

thread_local bool t_is_counted = false;

}  // namespace

void count_this_thread() {
  thread_local const Counted counted;
  t_is_counted = true;
}

void stop_other_threads(void (*before_stopping)(), std::chrono::milliseconds at_most) {
  t_ends_process = true;
  g_before_stopping = before_stopping;
  detail::process_is_ending = true;
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (g_stopped < g_recording - t_is_counted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void stop_this_thread() {
  if (t_ends_process) return;
  if (t_is_counted) ++g_stopped;
  g_before_stopping.load()();
  for (;;) pause();
}

}  // namespace ltc
