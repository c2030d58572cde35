#include "core/run/fallback_policy.h"

#include <mutex>
#include <set>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/run/metrics.h"

namespace ltc {
namespace {

std::string read_mode() {
  std::string mode = env::get(env::kFallback, "allow");
  if (mode != "allow" && mode != "warn" && mode != "error") {
    log::warn("LTC_FALLBACK=", mode, " is none of allow, warn, error; using allow");
    mode = "allow";
  }
  return mode;
}

bool is_first(std::string_view op) {
  static std::mutex mutex;
  static auto* known = new std::set<std::string, std::less<>>();  // leaked: queue threads may outlive static objects
  std::lock_guard lock(mutex);
  return known->emplace(op).second;
}

}  // namespace

void check_fallback(std::string_view op) {
  static const std::string mode = read_mode();
  if (mode == "error") fail(Code::kUnsupported, op, " runs on the CPU, not on the plugin, and LTC_FALLBACK=error forbids that");
  if (!is_first(op)) return;
  const log::Level level = mode == "warn" ? log::Level::kWarn : log::Level::kInfo;
  log::at(level, op, " runs on the CPU, not on the plugin (said once; each run is counted)");
}

void count_fallback(std::string_view op) { metrics::counter(op.substr(0, op.find('.'))) += 1; }

}  // namespace ltc
