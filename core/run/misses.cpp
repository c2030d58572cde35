#include "core/run/misses.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "core/base/log.h"
#include "core/run/varying_offsets.h"

namespace ltc {
namespace {

constexpr int64_t kRepeated = 5;
constexpr size_t kSeen = 32;

struct Account {
  using Key = std::pair<LocationId, Miss::Kind>;
  std::mutex mutex;
  std::deque<SeenTrace> seen;  // the last ones first
  std::map<Key, MissCount> by_place;
  std::set<Key> warned;  // for the life of the process
};

Account& account() {
  static auto* instance = new Account();
  return *instance;
}

const char* advice(Miss::Kind kind) {
  switch (kind) {
    case Miss::kType:
      return "every new size is compiled anew: keep to a few, by ltc.jit(fn, buckets=...) or by dropping the last, smaller batch";
    case Miss::kAttribute: return "this argument is a constant of the program: keep it, or pass it as a tensor";
    case Miss::kOp:
    case Miss::kOperands: return "the steps differ in what they do: end each with ltc.mark_step(), at the same place";
    case Miss::kResults: return "the steps differ in which results are held: drop, or keep, the same ones in each";
  }
  return "";
}

}  // namespace

void note_miss(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations,
               CompiledProgram::Source source) {
  const bool for_all = source == CompiledProgram::kCompiledForAll;
  std::lock_guard lock(account().mutex);
  auto miss = explain_miss(trace, roots, locations, account().seen);
  account().seen.push_front({trace, {roots.begin(), roots.end()}});
  if (account().seen.size() > kSeen) account().seen.pop_back();
  if (!miss) return;
  note_varying_offsets(miss->offsets);
  if (source != CompiledProgram::kCompiled && !for_all) return;
  if (for_all) miss->difference += ", now for further sizes too";
  const std::string text = cat("compiled, unlike before ", miss->difference, at_location(miss->where));
  log::info(text);
  const Account::Key key{miss->where, miss->kind};
  MissCount& place = account().by_place[key];
  place.difference = miss->difference;
  place.where = location_text(miss->where);
  if (++place.count == kRepeated && account().warned.insert(key).second)
    log::warn(text, ", the ", kRepeated, "th time: ", advice(miss->kind), " (said once; ltc.metrics.misses() has all)");
}

std::vector<MissCount> misses() {
  std::vector<MissCount> all;
  {
    std::lock_guard lock(account().mutex);
    for (const auto& [key, place] : account().by_place) all.push_back(place);
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
  account().by_place.clear();
}

}  // namespace ltc
