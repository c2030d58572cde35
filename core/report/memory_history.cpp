#include "core/report/memory_history.h"

#include <chrono>
#include <deque>

namespace ltc::memory_history {
namespace {

struct History {
  std::deque<Event> events;
  size_t most = 0;
};

History& history() {
  static auto* instance = new History();  // leaked: queue threads may outlive static destruction
  return *instance;
}

}  // namespace

namespace detail {
std::atomic<bool> enabled{false};
std::mutex mutex;
}  // namespace detail

void start(size_t most_events, bool forgets) {
  std::lock_guard lock(detail::mutex);
  if (forgets) history().events.clear();
  history().most = most_events;
  detail::enabled = true;
}

void stop() {
  std::lock_guard lock(detail::mutex);
  detail::enabled = false;
}

void Lock::add(Event event) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  event.time_us = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  History& kept = history();
  kept.events.push_back(event);
  while (kept.events.size() > kept.most) kept.events.pop_front();
}

std::vector<Event> Lock::events() const { return {history().events.begin(), history().events.end()}; }

}  // namespace ltc::memory_history
