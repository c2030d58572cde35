#include "core/compile/lowering/symbolic_programs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ltc {
namespace {

constexpr uint64_t kExecutableShare = 24;  // so many times the graph: as much for each node as the program cache counts

}  // namespace

std::optional<SymbolicPrograms::Found> SymbolicPrograms::find(const GraphSkeleton& graph, uint32_t precision) {
  insert_pending();
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->precision != precision) continue;
    if (auto symbols = entry->graph.match(graph)) {
      entries_.splice(entries_.begin(), entries_, entry);
      return Found{entry->code, *std::move(symbols)};
    }
  }
  return std::nullopt;
}

bool SymbolicPrograms::has_general(const GraphSkeleton& graph, uint32_t precision) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    return entry.precision == precision && entry.graph.symbol_count() > 0 && entry.graph.has_structure_of(graph);
  });
}

SymbolicGraph SymbolicPrograms::unify_with_nearest(const GraphSkeleton& graph, uint32_t precision) const {
  const std::lock_guard lock(mutex_);
  std::optional<SymbolicGraph> best;
  for (const Entry& entry : entries_) {
    if (entry.precision != precision) continue;
    auto unified = SymbolicGraph::unify(entry.graph, graph);
    if (unified && (!best || unified->numbers().size() < best->numbers().size())) best = std::move(unified);
  }
  return best ? *std::move(best) : SymbolicGraph(graph);
}

void SymbolicPrograms::insert(SymbolicGraph graph, uint32_t precision, Code code) {
  const uint64_t bytes = sizeof(Entry) + (1 + kExecutableShare) * graph.size_bytes();
  std::list<Entry> gone;  // let go of behind the lock: to destroy code is a call of the plugin
  const std::lock_guard lock(mutex_);
  while (!entries_.empty() && (entries_.size() >= capacity_ || bytes_ + bytes > limit_bytes_)) {
    bytes_ -= entries_.back().bytes;
    gone.splice(gone.begin(), entries_, std::prev(entries_.end()));
  }
  entries_.push_front({std::move(graph), precision, std::move(code), bytes});
  bytes_ += bytes;
}

void SymbolicPrograms::insert_later(std::function<SymbolicGraph()> graph, uint32_t precision, Code code) {
  std::unique_lock lock(mutex_);
  later_.push_back({std::move(graph), precision, std::move(code)});
  const bool is_full = later_.size() >= capacity_;
  lock.unlock();
  if (is_full) insert_pending();
}

void SymbolicPrograms::insert_pending() {
  std::unique_lock lock(mutex_);
  std::vector<Later> later = std::exchange(later_, {});
  lock.unlock();
  for (Later& one : later) insert(one.graph(), one.precision, std::move(one.code));
}

}  // namespace ltc
