#include "core/compile/lowering/partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/base/error.h"

namespace ltc {
namespace {

constexpr uint32_t kHost = 0, kAlone = 1;
constexpr int kRaises = 4;  // attempts to bring a cluster to one level before it goes to the host

// By value: the node that makes it, kNone for params.
std::vector<uint32_t> producers_of(const Graph& graph) {
  std::vector<uint32_t> producers(graph.types.size(), kNone);
  for (uint32_t node = 0; node < graph.nodes.size(); ++node) {
    for (const ValueId output : graph.nodes[node].outputs) {
      if (output != kNone) producers[output] = node;
    }
  }
  return producers;
}

// How often the work has changed sides before a node. Nodes of one side and level depend on none of that level of the other
// side, so they may run together.
class Levels {
 public:
  Levels(const Graph& graph, std::vector<uint32_t>& clusters)
      : graph_(graph), clusters_(clusters), producers_(producers_of(graph)), levels_(graph.nodes.size()) {}

  std::vector<uint32_t> run() {
    do assign();
    while (move_split_cluster());
    return std::move(levels_);
  }

 private:
  struct Cluster {
    uint32_t lowest = 0;  // no member goes below
    int raises = 0;
  };

  bool on_host(uint32_t node) const { return clusters_[node] == kHost; }

  void assign() {
    for (uint32_t node = 0; node < levels_.size(); ++node) {
      uint32_t level = clusters_[node] > kAlone ? known_[clusters_[node]].lowest : 0;
      for (const ValueId input : graph_.nodes[node].inputs) {
        if (input == kNone || producers_[input] == kNone) continue;
        const uint32_t producer = producers_[input];
        level = std::max(level, levels_[producer] + (on_host(producer) != on_host(node)));
      }
      levels_[node] = level;
    }
  }

  // The first cluster found on two levels moves to the higher one, or to the host if what is between its members keeps them
  // apart. False if there is none.
  bool move_split_cluster() {
    std::unordered_map<uint32_t, uint32_t> level_of;
    for (uint32_t node = 0; node < levels_.size(); ++node) {
      const uint32_t cluster = clusters_[node];
      if (cluster <= kAlone) continue;
      const uint32_t first = level_of.emplace(cluster, levels_[node]).first->second;
      if (first == levels_[node]) continue;
      Cluster& known = known_[cluster];
      known.lowest = std::max(first, levels_[node]);
      if (++known.raises > kRaises) std::ranges::replace(clusters_, cluster, kHost);
      return true;
    }
    return false;
  }

  const Graph& graph_;
  std::vector<uint32_t>& clusters_;
  const std::vector<uint32_t> producers_;
  std::vector<uint32_t> levels_;
  std::unordered_map<uint32_t, Cluster> known_;
};

// Builds the segments' graphs from the lists of their nodes, which are in running order.
class Cutter {
 public:
  explicit Cutter(const Graph& graph)
      : graph_(graph),
        producers_(producers_of(graph)),
        last_reader_(graph.types.size(), 0),
        crosses_(graph.types.size(), false),
        rank_(graph.types.size(), kNone) {
    for (uint32_t i = 0; i < graph.outputs.size(); ++i) rank_[graph.outputs[i]] = i;
  }

  std::vector<Segment> run(std::vector<Segment> segments) {
    find_crossings(segments);
    for (uint32_t i = 0; i < segments.size(); ++i) build(segments[i], i);
    return segments;
  }

 private:
  void find_crossings(const std::vector<Segment>& segments) {
    std::vector<uint32_t> segment_of(graph_.nodes.size());
    for (uint32_t i = 0; i < segments.size(); ++i) {
      for (const uint32_t node : segments[i].nodes) segment_of[node] = i;
    }
    for (const ValueId output : graph_.outputs) crosses_[output] = true;
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      for (const ValueId input : graph_.nodes[node].inputs) {
        if (input == kNone) continue;
        last_reader_[input] = std::max(last_reader_[input], segment_of[node]);
        if (producers_[input] != kNone && segment_of[producers_[input]] != segment_of[node]) crosses_[input] = true;
      }
    }
  }

  void build(Segment& segment, uint32_t index) {
    inner_.assign(graph_.types.size(), kNone);
    add_params(segment);
    for (const uint32_t outer : segment.nodes) {
      Node node = graph_.nodes[outer];
      for (ValueId& input : node.inputs) input = input == kNone ? kNone : inner_[input];
      for (ValueId& output : node.outputs) output = output == kNone ? kNone : add_result(segment, output);
      segment.graph.nodes.push_back(std::move(node));
    }
    // Those of the graph in the graph's order, then those for other segments only.
    std::ranges::stable_sort(segment.outputs, {}, [&](ValueId value) { return rank_[value]; });
    for (const ValueId output : segment.outputs) segment.graph.outputs.push_back(inner_[output]);
    if (segment.on_device) add_aliases(segment, index);
  }

  // Outer params first, in their order, then values of earlier segments in the order of their first use.
  void add_params(Segment& segment) {
    std::vector<bool> made(graph_.types.size(), false), read(made);
    std::vector<ValueId> from_segments;
    for (const uint32_t node : segment.nodes) {
      for (const ValueId input : graph_.nodes[node].inputs) {
        if (input == kNone || made[input] || read[input]) continue;
        read[input] = true;
        if (producers_[input] != kNone) from_segments.push_back(input);
      }
      for (const ValueId output : graph_.nodes[node].outputs) {
        if (output != kNone) made[output] = true;
      }
    }
    uint32_t scalar = 0;
    for (const Param& param : graph_.params) {
      const uint32_t outer_scalar = param.scalar ? scalar++ : kNone;
      if (!read[param.value]) continue;
      inner_[param.value] = segment.graph.add_param(graph_.types[param.value], param.scalar);
      if (param.scalar) {
        segment.scalars.push_back(outer_scalar);
      } else {
        segment.inputs.push_back(param.value);
      }
    }
    for (const ValueId value : from_segments) {
      inner_[value] = segment.graph.add_param(graph_.types[value]);
      segment.inputs.push_back(value);
    }
  }

  ValueId add_result(Segment& segment, ValueId outer) {
    inner_[outer] = segment.graph.add_value(graph_.types[outer]);
    if (crosses_[outer]) segment.outputs.push_back(outer);
    return inner_[outer];
  }

  void add_aliases(Segment& segment, uint32_t index) const {
    for (const Param& param : graph_.params) {
      if (param.alias_output == kNone || inner_[param.value] == kNone || last_reader_[param.value] > index) continue;
      const auto output = std::ranges::find(segment.outputs, graph_.outputs[param.alias_output]);
      if (output == segment.outputs.end()) continue;
      auto& inner = *std::ranges::find(segment.graph.params, inner_[param.value], &Param::value);
      inner.alias_output = static_cast<uint32_t>(output - segment.outputs.begin());
    }
  }

  const Graph& graph_;
  const std::vector<uint32_t> producers_;
  std::vector<uint32_t> last_reader_;  // by value: the last segment that reads it
  std::vector<bool> crosses_;          // by value: read outside its segment
  std::vector<uint32_t> rank_;         // by value: which output of the graph it is, or kNone
  std::vector<ValueId> inner_;         // by value: its id in the segment being built
};

Segment whole(const Graph& graph) {
  Segment segment{true, graph};
  segment.nodes.resize(graph.nodes.size());
  std::iota(segment.nodes.begin(), segment.nodes.end(), 0);
  uint32_t scalar = 0;
  for (const Param& param : graph.params) {
    if (param.scalar) {
      segment.scalars.push_back(scalar++);
    } else {
      segment.inputs.push_back(param.value);
    }
  }
  segment.outputs = graph.outputs;
  return segment;
}

}  // namespace

std::vector<Segment> partition(const Graph& graph, std::vector<uint32_t>& clusters) {
  ensure(clusters.size() == graph.nodes.size(), "[partition] ", clusters.size(), " clusters for ", graph.nodes.size(), " nodes");
  if (graph.nodes.empty()) return {};
  if (std::ranges::count(clusters, kHost) == 0) return {whole(graph)};

  const std::vector<uint32_t> levels = Levels(graph, clusters).run();
  std::map<std::pair<uint32_t, bool>, Segment> by_level;
  for (uint32_t node = 0; node < graph.nodes.size(); ++node) {
    const bool on_device = clusters[node] != kHost;
    Segment& segment = by_level[{levels[node], on_device}];
    segment.on_device = on_device;
    segment.nodes.push_back(node);
  }
  std::vector<Segment> segments;
  for (auto& [key, segment] : by_level) segments.push_back(std::move(segment));
  return Cutter(graph).run(std::move(segments));
}

}  // namespace ltc
