#include "core/report/fallback_policy.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/report/metrics.h"

namespace ltc {
namespace {

struct Tally {
  int64_t count = 0, bytes = 0;
};

struct Entry {
  std::string reason;
  LocationId where = kNoLocation, where_since_reset = kNoLocation;  // of the first time
  bool announced = false;
  Tally all, reset_at;  // of the process; of them before the last reset
};

struct Account {
  std::mutex mutex;
  std::map<std::string, Entry, std::less<>> by_op;

  Entry& entry(std::string_view op) {
    const auto it = by_op.find(op);
    return it != by_op.end() ? it->second : by_op.try_emplace(std::string(op)).first->second;
  }
};

// Leaked: queue threads may outlive static objects.
Account& account() {
  static auto* instance = new Account();
  return *instance;
}

// Whether it is the op's first time.
bool announce(std::string_view op, std::string_view reason, LocationId where) {
  std::lock_guard lock(account().mutex);
  Entry& entry = account().entry(op);
  if (entry.all.count == entry.reset_at.count) entry.where_since_reset = where;
  if (std::exchange(entry.announced, true)) return false;
  entry.reason = reason;
  entry.where = where;
  return true;
}

std::vector<Fallback> collect(bool since_reset) {
  std::vector<Fallback> result;
  {
    std::lock_guard lock(account().mutex);
    for (const auto& [op, entry] : account().by_op) {
      const Tally before = since_reset ? entry.reset_at : Tally{};
      if (entry.all.count == before.count) continue;
      const LocationId where = since_reset ? entry.where_since_reset : entry.where;
      result.push_back({op, entry.reason, location_text(where), entry.all.count - before.count, entry.all.bytes - before.bytes});
    }
  }
  std::ranges::stable_sort(result, std::greater(), &Fallback::count);
  return result;
}

}  // namespace

void check_fallback(std::string_view op, std::string_view reason, LocationId where) {
  static const std::string mode = env::get(env::kFallback);
  if (mode == "error") {
    fail(Code::kUnsupported, op, at_location(where), " runs on the CPU, not on the plugin: ", reason,
         "; LTC_FALLBACK=error forbids that");
  }
  if (!announce(op, reason, where)) return;
  const log::Level level = mode == "warn" ? log::Level::kWarn : log::Level::kInfo;
  log::at(level, op, at_location(where), " runs on the CPU, not on the plugin: ", reason, " (said once; each run is counted)");
}

void check_fallbacks(const Program& program) {
  for_each_host_node(
      program, [](const Node& node, const std::string& reason) { check_fallback(op_name(node.op), reason, node.location); });
}

void count_fallback(std::string_view op, int64_t bytes) {
  metrics::counter(op.substr(0, op.find('.'))) += 1;
  metrics::counter(metrics::kFallbackBytes) += bytes;
  std::lock_guard lock(account().mutex);
  Tally& tally = account().entry(op).all;
  tally.count += 1;
  tally.bytes += bytes;
}

void count_host_step(const Graph& graph) {
  std::vector<bool> crosses(graph.types.size(), false);
  for (const Param& param : graph.params) crosses[param.value] = !param.scalar;
  for (const ValueId output : graph.outputs) crosses[output] = true;
  for (const Node& node : graph.nodes) {
    int64_t bytes = 0;
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) {
        if (value == kNone || !crosses[value]) continue;
        crosses[value] = false;  // once
        bytes += static_cast<int64_t>(graph.type(value).size_bytes());
      }
    }
    count_fallback(op_name(node.op), bytes);
  }
}

std::vector<Fallback> fallbacks() { return collect(true); }

std::string fallback_report() {
  std::string text;
  for (const Fallback& one : fallbacks()) {
    text += cat("Fallback: ", one.op, "\n  Count: ", one.count, "\n  Bytes: ", one.bytes, "\n");
    if (!one.where.empty()) text += cat("  First at: ", one.where, "\n");
    text += cat("  Reason: ", one.reason, "\n");
  }
  return text;
}

void reset_fallbacks() {
  std::lock_guard lock(account().mutex);
  for (auto& [op, entry] : account().by_op) entry.reset_at = entry.all;
}

void log_fallback_summary() {
  constexpr size_t kNamed = 5;
  static std::once_flag once;
  std::call_once(once, [] {
    const std::vector<Fallback> all = collect(false);
    if (all.empty()) return;
    int64_t bytes = 0;
    std::string names;
    for (size_t i = 0; i < all.size(); ++i) {
      bytes += all[i].bytes;
      if (i >= kNamed) continue;
      names += cat(i ? ", " : "", all[i].op, " ", all[i].count, "x", all[i].where.empty() ? "" : " (" + all[i].where + ")");
    }
    if (all.size() > kNamed) names += cat(" and ", all.size() - kNamed, " more");
    log::warn(all.size(), all.size() == 1 ? " op" : " ops", " ran on the CPU instead of on the plugin, ", size_text(bytes),
              " moved for that: ", names);
  });
}

}  // namespace ltc
