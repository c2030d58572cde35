#include "core/report/misses.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "core/base/log.h"

namespace ltc {
namespace {

constexpr size_t kSeen = 32;

struct Account {
  using Key = std::pair<LocationId, Miss::Kind>;
  std::mutex mutex;
  std::deque<SeenTrace> seen;  // the last ones first
  std::map<Key, MissCount> by_line;
  std::map<Key, int64_t> times;  // compiled in full or with little effort
  std::set<Key> warned;          // for the life of the process
};

Account& account() {
  static auto* instance = new Account();
  return *instance;
}

const char* advice(Miss::Kind kind) {
  switch (kind) {
    case Miss::kType:
      return "every new size is a program of its own: keep to a few, by ltc.jit(fn, buckets=...) or by dropping the last, "
             "smaller batch";
    case Miss::kAttribute: return "this argument is a constant of the program: keep it, or pass it as a tensor";
    case Miss::kOp:
    case Miss::kOperands: return "the steps differ in what they do: end each with ltc.mark_step(), at the same place";
    case Miss::kResults: return "the steps differ in which results are held: drop, or keep, the same ones in each";
  }
  return "";
}

}  // namespace

ExplainedMiss explain_miss(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations) {
  std::lock_guard lock(account().mutex);
  ExplainedMiss explained{explain_miss(trace, roots, locations, account().seen)};
  if (!explained.miss) return explained;
  const auto known = account().times.find({explained.miss->where, explained.miss->kind});
  if (known != account().times.end()) explained.earlier = known->second;
  return explained;
}

void note_miss(ExplainedMiss explained, const Trace& trace, std::span<const Root> roots, CompiledProgram::Source source,
               bool may_be_quick) {
  std::lock_guard lock(account().mutex);
  account().seen.push_front({trace, {roots.begin(), roots.end()}});
  if (account().seen.size() > kSeen) account().seen.pop_back();
  if (!explained.miss) return;
  Miss& miss = *explained.miss;
  const bool is_symbolic = source == CompiledProgram::kCompiledSymbolic, is_quick = source == CompiledProgram::kQuick;
  if (source != CompiledProgram::kCompiled && !is_symbolic && !is_quick) return;
  if (is_symbolic) miss.difference += ", now for further sizes too";
  const std::string text =
      cat(is_quick ? "compiled with little effort" : "compiled", ", unlike before ", miss.difference, at_location(miss.where));
  log::info(text);
  const Account::Key key{miss.where, miss.kind};
  const int64_t times = ++account().times[key];
  if (is_quick) return;
  MissCount& entry = account().by_line[key];
  entry.difference = miss.difference;
  entry.where = location_text(miss.where);
  ++entry.count;
  if (is_symbolic || times != kRepeatedMisses || !account().warned.insert(key).second) return;
  log::warn(text, ", the ", kRepeatedMisses, "th time: ", may_be_quick ? "further ones are optimized when they repeat; " : "",
            advice(miss.kind), " (said once; ltc.metrics.misses() has all)");
}

std::vector<MissCount> misses() {
  std::vector<MissCount> all;
  {
    std::lock_guard lock(account().mutex);
    for (const auto& [key, entry] : account().by_line) all.push_back(entry);
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &MissCount::count);
  return all;
}

std::string miss_report() {
  std::string text;
  for (const MissCount& one : misses()) {
    text += cat("Miss: ", one.difference, "\n  Count: ", one.count, "\n");
    if (!one.where.empty()) text += cat("  Last at: ", one.where, "\n");
  }
  return text;
}

void reset_misses() {
  std::lock_guard lock(account().mutex);
  account().by_line.clear();
  account().times.clear();
}

}  // namespace ltc
