#include "core/run/device/trace_splits.h"

#include <algorithm>
#include <iterator>

namespace ltc {
namespace {

constexpr size_t kPlans = 16;
constexpr uint32_t kVariants = 3;  // after the first one: one or two may belong to another model of the same code
constexpr size_t kCounted = 1024;  // steps
constexpr size_t kWorthACut = 64;  // records: some fifty times a barrier's own cost to compile

// Where the last op before `end` begins. A recorder may look at the length before it records an op instead of after, and would
// split one op too late.
size_t begin_of_last_op(const Trace& trace, size_t end) {
  while (end > 0 && !is_node(trace.records[end - 1])) --end;  // further results of the op, params of the next one
  if (end > 0) --end;
  while (end > 0 && !is_node(trace.records[end - 1])) --end;
  return end;
}

}  // namespace

bool TraceSplits::has_many_variants(const Trace& trace, std::span<const LocationId> locations) {
  uint64_t common = trace.records.size();
  for (const Record& record : trace.records) common = hash_mix(common, record.op);
  for (const LocationId location : locations) common = hash_mix(common, location);
  if (variants_.size() >= kCounted) variants_.clear();
  return ++variants_[common] >= kVariants;
}

void TraceSplits::learn(const Trace& trace, std::span<const LocationId> locations, EqualPart equal) {
  const size_t length = equal.end - equal.begin;
  if (length < kWorthACut || length < trace.records.size() / 2) return;
  const size_t split = equal.begin > 0 ? equal.begin : begin_of_last_op(trace, equal.end);
  if (split == 0 || !has_many_variants(trace, locations)) return;
  Plan plan{newest_ + 1};
  const auto beginning = std::span(trace.records).first(split);
  std::ranges::transform(beginning, std::back_inserter(plan.ops), &Record::op);
  const auto nodes = static_cast<size_t>(std::ranges::count_if(beginning, is_node));
  plan.locations.assign(locations.begin(), locations.begin() + static_cast<ptrdiff_t>(std::min(nodes, locations.size())));
  const auto is_known = [&](const Plan& other) { return other.ops == plan.ops && other.locations == plan.locations; };
  if (std::ranges::any_of(plans_, is_known)) return;
  plans_.push_front(std::move(plan));
  ++newest_;
  if (plans_.size() > kPlans) plans_.pop_back();
}

size_t TraceSplits::next(size_t length) const {
  size_t nearest = SIZE_MAX;
  for (const Plan& plan : plans_) {
    if (plan.id != last_ && plan.ops.size() > length) nearest = std::min(nearest, plan.ops.size());
  }
  return nearest;
}

bool TraceSplits::end_here(const Trace& trace, std::span<const LocationId> locations, size_t length) {
  for (const Plan& plan : plans_) {
    if (plan.id == last_ || plan.ops.size() != length || trace.records.size() < length) continue;
    if (!std::ranges::equal(plan.ops, std::span(trace.records).first(length), {}, {}, &Record::op)) continue;
    if (locations.size() < plan.locations.size() || !std::ranges::equal(plan.locations, locations.first(plan.locations.size())))
      continue;
    ending_ = plan.id;
    return true;
  }
  return false;
}

}  // namespace ltc
