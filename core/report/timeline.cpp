#include "core/report/timeline.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace ltc::timeline {
namespace {

std::atomic<bool> g_enabled{false};
std::mutex g_mutex;
std::vector<Event>& events() {
  static auto* list = new std::vector<Event>();  // leaked: queue threads may outlive static destruction
  return *list;
}

}  // namespace

void start() {
  std::lock_guard lock(g_mutex);
  events().clear();
  g_enabled = true;
}

std::vector<Event> stop() {
  std::lock_guard lock(g_mutex);
  g_enabled = false;
  return std::exchange(events(), {});
}

bool enabled() { return g_enabled.load(std::memory_order_relaxed); }

uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

Span::~Span() {
  if (begin_ns_ == 0) return;
  const uint64_t thread = std::hash<std::thread::id>{}(std::this_thread::get_id());
  std::lock_guard lock(g_mutex);
  if (g_enabled) events().push_back({name_, thread, begin_ns_, now_ns(), run_id_});
}

}  // namespace ltc::timeline
