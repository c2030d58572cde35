#include "core/report/metrics.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/host/validation/report.h"
#include "core/report/fallback_policy.h"
#include "core/report/misses.h"

namespace ltc::metrics {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::string, Counter, std::less<>> counters;  // nodes never move
};

// Leaked: counters are read and written while static objects are destroyed.
Table& table() {
  static auto* instance = new Table();
  return *instance;
}

// Below this folder nobody can count.
[[maybe_unused]] const bool counts_violations = [] {
  host::validation::listen([](const host::validation::Clause& clause) { ++counter(cat("Violation.", clause.id)); });
  return true;
}();

}  // namespace

Counter& counter(std::string_view name) {
  std::lock_guard lock(table().mutex);
  auto& counters = table().counters;
  const auto it = counters.find(name);
  return it != counters.end() ? it->second : counters.try_emplace(std::string(name), 0).first->second;
}

std::vector<std::string> counter_names() {
  std::lock_guard lock(table().mutex);
  std::vector<std::string> names;
  for (const auto& [name, value] : table().counters) {
    if (value.load() != 0) names.push_back(name);
  }
  return names;
}

int64_t counter_value(std::string_view name) {
  std::lock_guard lock(table().mutex);
  const auto it = table().counters.find(name);
  return it == table().counters.end() ? 0 : it->second.load();
}

std::string report() {
  std::string text;
  for (const std::string& name : counter_names()) text += cat("Counter: ", name, "\n  Value: ", counter_value(name), "\n");
  return text.empty() ? "no counter is set\n" : text + fallback_report() + miss_report();
}

void reset() {
  reset_fallbacks();
  reset_misses();
  std::lock_guard lock(table().mutex);
  for (auto& [name, value] : table().counters) value = 0;
}

}  // namespace ltc::metrics
