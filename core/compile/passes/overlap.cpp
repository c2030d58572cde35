#include "core/compile/passes/overlap.h"

#include <algorithm>
#include <compare>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/compile/passes/passes.h"

namespace ltc {
namespace {

constexpr size_t kInput = 0, kAfter = 1;   // operands of a collective
constexpr size_t kResult = 0, kToken = 1;  // its results

bool is_start(const Node& node) { return is_collective(node.op) && op_name(node.op).ends_with("_start"); }
bool is_wait(const Node& node) { return op_name(node.op) == "ltc_c10d::wait"; }

// Returns whether there was one.
bool split(Graph& graph) {
  std::vector<Node> nodes;
  bool any = false;
  for (Node& node : graph.nodes) {
    if (!is_collective(node.op) || node.outputs[kResult] == kNone) {
      nodes.push_back(std::move(node));
      continue;
    }
    any = true;
    const Attr* group = find_attr(attrs_of(node.attrs), "group");
    ensure(group, "[overlap] a collective without a group");
    const ValueId result = node.outputs[kResult];
    const ValueId pending = graph.add_value(graph.types[result]);
    const Node wait{intern_op("ltc_c10d::wait"), intern_attrs({*group}), {pending}, {result}, node.location};
    node.op = intern_op(op_name(node.op) + "_start");
    node.outputs[kResult] = pending;
    nodes.push_back(std::move(node));
    nodes.push_back(wait);
  }
  graph.nodes = std::move(nodes);
  return any;
}

// Where a node goes: to another one, before or behind it, and there in the order of the graph.
struct Place {
  enum Side : uint8_t { kBefore, kAt, kBehind };

  uint32_t node;
  Side side = kAt;
  uint32_t index;
  auto operator<=>(const Place&) const = default;
};

class Schedule {
 public:
  explicit Schedule(const Graph& graph)
      : graph_(graph),
        producers_(graph.types.size(), kNone),
        is_scalar_(graph.types.size(), false),
        readers_(graph.nodes.size()) {
    const auto count = static_cast<uint32_t>(graph.nodes.size());
    for (uint32_t node = 0; node < count; ++node) {
      places_.push_back({node, Place::kAt, node});
      for (const ValueId input : graph.nodes[node].inputs) add_reader(input, node);
      for (const ValueId output : graph.nodes[node].outputs) {
        if (output != kNone) producers_[output] = node;
      }
    }
    for (const ValueId output : graph.outputs) add_reader(output, count);
    for (const Param& param : graph.params) is_scalar_[param.value] = param.scalar;
  }

  // The nodes in their new order.
  std::vector<uint32_t> run() {
    sink();
    hoist();
    std::vector<uint32_t> order(graph_.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](uint32_t node) { return places_[node]; });
    return order;
  }

 private:
  void add_reader(ValueId value, uint32_t reader) {
    if (value != kNone && producers_[value] != kNone) readers_[producers_[value]].push_back(reader);
  }
  const Node& node(uint32_t index) const { return graph_.nodes[index]; }

  // Waits, and what reads such a result and no other buffer.
  std::vector<bool> movable() const {
    std::vector<bool> result(graph_.nodes.size(), false);
    for (uint32_t i = 0; i < result.size(); ++i) {
      if (is_wait(node(i))) result[i] = true;
      if (is_collective(node(i).op)) continue;
      bool reads_result = false, reads_other = false;
      for (const ValueId input : node(i).inputs) {
        if (input == kNone || is_scalar_[input]) continue;
        const bool is_moved = producers_[input] != kNone && result[producers_[input]];
        (is_moved ? reads_result : reads_other) = true;
      }
      result[i] = reads_result && !reads_other;
    }
    return result;
  }

  void sink() {
    const auto count = static_cast<uint32_t>(graph_.nodes.size());
    const std::vector<bool> moves = movable();
    for (uint32_t i = count; i-- > 0;) {
      if (!moves[i]) continue;
      places_[i] = {count, Place::kBefore, i};
      for (const uint32_t reader : readers_[i])
        places_[i].node = std::min(places_[i].node, reader == count ? count : places_[reader].node);
    }
  }

  // The nodes that make the input of a start. False if they do not depend on params alone, or somebody else reads what they make.
  bool find_sources(uint32_t start, std::vector<uint32_t>& sources) const {
    const ValueId input = node(start).inputs[kInput];
    if (producers_[input] == kNone) return true;
    std::vector<uint32_t> waiting = {producers_[input]};
    while (!waiting.empty()) {
      const uint32_t source = waiting.back();
      waiting.pop_back();
      if (std::ranges::find(sources, source) != sources.end()) continue;
      if (is_collective(node(source).op) || sources.size() == kMostSources) return false;
      sources.push_back(source);
      for (const ValueId read : node(source).inputs) {
        if (read != kNone && producers_[read] != kNone) waiting.push_back(producers_[read]);
      }
    }
    const auto may_read = [&](uint32_t reader) { return reader == start || std::ranges::find(sources, reader) != sources.end(); };
    return std::ranges::all_of(sources, [&](uint32_t source) { return std::ranges::all_of(readers_[source], may_read); });
  }

  void hoist() {
    Place waited{0, Place::kBefore, 0};  // for the last that depends on params alone
    bool is_first = true;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      std::vector<uint32_t> sources;
      if (!is_start(node(i)) || !find_sources(i, sources)) continue;
      if (!std::exchange(is_first, false)) move_up(i, sources, waited);
      waited = {places_[i + 1].node, Place::kBehind, 0};  // split() has put the wait there
    }
  }

  // To that place, but behind the group's collective before it.
  void move_up(uint32_t start, const std::vector<uint32_t>& sources, Place place) {
    const ValueId after = node(start).inputs[kAfter];
    if (after != kNone && producers_[after] != kNone) {
      const Place& before = places_[producers_[after]];
      place = std::max(place, Place{before.node, Place::kBehind, 0});
    }
    if (place.node >= start) return;
    places_[start] = {place.node, Place::kBehind, start};
    for (const uint32_t source : sources) places_[source] = std::min(places_[source], {place.node, Place::kBehind, source});
  }

  static constexpr size_t kMostSources = 64;

  const Graph& graph_;
  std::vector<uint32_t> producers_;             // by value; kNone for params
  std::vector<bool> is_scalar_;                 // by value
  std::vector<std::vector<uint32_t>> readers_;  // by node, the nodes; their number for the caller
  std::vector<Place> places_;                   // by node
};

}  // namespace

bool overlap_collectives(Graph& graph) {
  if (!split(graph)) return false;
  std::vector<Node> nodes;
  for (const uint32_t index : Schedule(graph).run()) nodes.push_back(graph.nodes[index]);
  graph.nodes = std::move(nodes);
  dce(graph);
  return true;
}

}  // namespace ltc
