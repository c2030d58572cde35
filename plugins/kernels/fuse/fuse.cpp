#include "kernels/fuse/fuse.h"

#include <algorithm>

#include "kernels/fuse/candidates.h"
#include "kernels/graph/reads.h"

namespace ltc::kernels {
namespace {

// A work item per row runs in parallel with others only if there are some; long rows that are few stay apart.
constexpr int64_t kFewRows = 16, kLongRow = 1024;
// Kernels have room for so many arguments.
constexpr size_t kMostBuffers = 24;
// So far back a candidate looks for a cluster that reads what it reads.
constexpr size_t kNeighbours = 6;

class Fuser {
 public:
  Fuser(const Graph& graph, const Options& options)
      : graph_(graph), options_(options), found_(find_candidates(graph, options)), home_(graph.values.size(), kNone) {}

  Fusion fuse() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (found_.is_live[id]) place(id);
    }
    find_stored();
    for (uint32_t i = 0; i < fusion_.clusters.size(); ++i) find_nodes(i);
    return std::move(fusion_);
  }

 private:
  void place(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (is_unfusable(graph_, node, options_)) {
      Cluster cluster{.form = Cluster::Form::kUnfusable, .rows_of = id};
      for (const ValueId value : node.out) {
        if (value != kNone && found_.is_candidate[value]) cluster.members.push_back(value);
      }
      cluster.note = "a kernel of its own kind, with no room for other ops";
      add(std::move(cluster), leaves_of(node));
      return;
    }
    const ValueId result = node.out[0];
    if (result == kNone || !found_.is_candidate[result]) return;
    const std::set<ValueId> leaves = leaves_of(node);
    std::string reason;
    if (join(id, leaves, reason)) return;
    Cluster cluster = own_cluster(id);
    cluster.note = std::move(reason);
    add(std::move(cluster), leaves);
  }

  void add(Cluster cluster, std::set<ValueId> leaves) {
    for (const ValueId value : cluster.members) home_[value] = static_cast<uint32_t>(fusion_.clusters.size());
    cluster.leaves = std::move(leaves);
    fusion_.clusters.push_back(std::move(cluster));
  }

  Cluster own_cluster(NodeId id) const {
    const Node& node = graph_.nodes[id];
    Cluster cluster{.form = Cluster::Form::kMap, .items = graph_.values[node.out[0]].count, .members = {node.out[0]}};
    if (is_reduction(graph_, node, options_)) {
      cluster.form = Cluster::Form::kRows;
      cluster.rows_of = id;
      cluster.length = node.kind == Kind::kProduct ? graph_.values[node.in[0]].sizes[2] : row_length(graph_, node);
    }
    return cluster;
  }

  // Params and candidates that the node reads, through what is computed in place.
  std::set<ValueId> leaves_of(const Node& node) const {
    std::set<ValueId> leaves;
    std::vector<ValueId> open(node.in);
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (value == kNone) continue;
      const NodeId producer = graph_.values[value].producer;
      if (producer == kNone || found_.is_candidate[value]) {
        if (!graph_.is_scalar_param(value)) leaves.insert(value);
      } else {
        open.insert(open.end(), graph_.nodes[producer].in.begin(), graph_.nodes[producer].in.end());
      }
    }
    return leaves;
  }

  // ---- joining

  // `reason`: out, why not that of what it reads.
  bool join(NodeId id, const std::set<ValueId>& leaves, std::string& reason) {
    uint32_t latest = kNone;
    for (const ValueId leaf : leaves) {
      if (home_[leaf] != kNone) latest = latest == kNone ? home_[leaf] : std::max(latest, home_[leaf]);
    }
    if (latest != kNone && try_join(id, latest, leaves, &reason)) return true;
    // A later cluster does as well, if it reads the same.
    const size_t first = std::max(latest == kNone ? 0 : size_t{latest} + 1,
                                  fusion_.clusters.size() - std::min(fusion_.clusters.size(), kNeighbours));
    for (size_t i = fusion_.clusters.size(); i-- > first;) {
      const auto& others = fusion_.clusters[i].leaves;
      const bool shares = std::ranges::any_of(leaves, [&](ValueId leaf) { return others.contains(leaf); });
      if (shares && try_join(id, static_cast<uint32_t>(i), leaves, nullptr)) return true;
    }
    return false;
  }

  bool try_join(NodeId id, uint32_t at, const std::set<ValueId>& leaves, std::string* explained) {
    Cluster& cluster = fusion_.clusters[at];
    const ValueId result = graph_.nodes[id].out[0];
    const Cluster joined = with(cluster, id);
    std::string reason = why_not(cluster, joined, id, leaves);
    if (!reason.empty()) {
      if (explained) {
        note(id, at, reason);
        *explained =
            op_name(graph_.nodes[id]) + " is not in the kernel of " + op_name(producer(cluster.members.back())) + ": " + reason;
      }
      return false;
    }
    std::set<ValueId> all = cluster.leaves;
    all.insert(leaves.begin(), leaves.end());
    cluster = joined;
    cluster.leaves = std::move(all);
    home_[result] = at;
    return true;
  }

  // The cluster with the node's result as a member; a reduction turns elements into rows.
  Cluster with(const Cluster& cluster, NodeId id) const {
    Cluster joined = cluster;
    if (joined.form == Cluster::Form::kMap && is_reduction(graph_, graph_.nodes[id], options_)) {
      const Cluster own = own_cluster(id);
      joined.form = own.form;
      joined.rows_of = own.rows_of;
      joined.items = own.items;
      joined.length = own.length;
    }
    joined.members.push_back(graph_.nodes[id].out[0]);
    return joined;
  }

  std::string why_not(const Cluster& before, const Cluster& cluster, NodeId id, const std::set<ValueId>& leaves) const {
    const Node& node = graph_.nodes[id];
    const int64_t count = graph_.values[node.out[0]].count;
    if (before.form == Cluster::Form::kUnfusable) return "that one has no room for others";
    if (before.leaves.size() + leaves.size() + cluster.members.size() > kMostBuffers) return "too many buffers";
    const bool reduces = is_reduction(graph_, node, options_);
    if (cluster.form == Cluster::Form::kMap && count != cluster.items) return "another number of elements";
    if (cluster.form == Cluster::Form::kRows) {
      if (reduces && (count != cluster.items || own_cluster(id).length != cluster.length)) return "other rows";
      if (!reduces && count != cluster.items && count != cluster.items * cluster.length)
        return "neither its rows nor its elements";
      const bool elements = before.form == Cluster::Form::kMap || (!reduces && count != cluster.items);
      // No value holds the terms of a product.
      if (graph_.nodes[cluster.rows_of].kind == Kind::kProduct && elements) return "no elements but rows";
      if (before.form == Cluster::Form::kMap && before.items != cluster.items * cluster.length) return "other rows";
      if (elements && cluster.items < kFewRows && cluster.length > kLongRow) return "too few rows to run side by side";
    }
    return misread(cluster, id);
  }

  // Why the node would read a member of the cluster elsewhere than it is computed; empty: it does not.
  std::string misread(const Cluster& cluster, NodeId id) const {
    IndexSpace space;
    const Index item = space.of_var(space.add({.extent = cluster.items}));
    const Index r = space.of_var(space.add({.extent = cluster.length}));
    const Positions positions = positions_of(graph_, cluster, item, r, space);
    const Node& node = graph_.nodes[id];
    const Value& result = graph_.values[node.out[0]];
    const bool is_row = positions.is_row(cluster, result);
    const Coords at = space.split(is_row ? positions.row : positions.full, result.sizes);
    return misread_below(cluster, positions, space, node, reads(node, at, r, space));
  }

  // `reads`: of the reader.
  std::string misread_below(const Cluster& cluster, const Positions& positions, IndexSpace& space, const Node& reader,
                            const std::vector<Read>& reads) const {
    for (const Read& read : reads) {
      const Value& value = graph_.values[read.operand];
      if (value.producer == kNone) continue;
      if (found_.is_candidate[read.operand]) {
        if (std::ranges::find(cluster.members, read.operand) == cluster.members.end()) continue;
        if (reads_other_size(graph_, reader))
          return "reads the bytes of " + op_name(producer(read.operand)) + ", of another dtype";
        const Index& there = positions.is_row(cluster, value) ? positions.row : positions.full;
        if (space.linear(read.at, value.sizes) != there || !read.when.empty())
          return "reads " + op_name(graph_.nodes[value.producer]) + " elsewhere than it is computed";
        continue;
      }
      const Node& node = graph_.nodes[value.producer];
      std::string reason = misread_below(cluster, positions, space, node, this->reads(node, read.at, {}, space));
      if (!reason.empty()) return reason;
    }
    return {};
  }

  std::vector<Read> reads(const Node& node, const Coords& at, const Index& r, IndexSpace& space) const {
    if (node.kind == Kind::kProduct) return {{node.in[0], {at[0], at[1], r}}, {node.in[1], {at[0], r, at[2]}}};
    if (is_reduction(graph_, node, options_)) return {row_element(graph_, node, at, r, space)};
    if (node.kind != Kind::kGather) return reads_of(graph_, node, at, space);
    const Index anywhere = space.of_var(space.add({.kind = Var::Kind::kData, .extent = INT32_MAX}));
    return {{node.in[1], at}, gathered(graph_, node, at, anywhere)};
  }

  void note(NodeId id, uint32_t cluster, const std::string& reason) {
    const Node& node = graph_.nodes[id];
    fusion_.notes.push_back("%" + std::to_string(node.out[0]) + " = " + op_name(node) + " is not in cluster " +
                            std::to_string(cluster) + ": " + reason);
  }

  const Node& producer(ValueId value) const { return graph_.nodes[graph_.values[value].producer]; }

  // Those of the members, and what is computed where they read it.
  void find_nodes(uint32_t at) {
    Cluster& cluster = fusion_.clusters[at];
    std::set<NodeId> nodes;
    std::vector<ValueId> open(cluster.members);
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (value == kNone || graph_.values[value].producer == kNone) continue;
      if (found_.is_candidate[value] && home_[value] != at) continue;
      if (!nodes.insert(graph_.values[value].producer).second) continue;
      const auto& in = producer(value).in;
      open.insert(open.end(), in.begin(), in.end());
    }
    cluster.nodes.assign(nodes.begin(), nodes.end());
  }

  // ---- what needs a buffer

  void find_stored() {
    fusion_.is_stored.assign(graph_.values.size(), false);
    for (const Param& param : graph_.params) fusion_.is_stored[param.value] = !param.scalar;
    for (const Cluster& cluster : fusion_.clusters) {
      for (const ValueId leaf : cluster.leaves) {
        const bool own = std::ranges::find(cluster.members, leaf) != cluster.members.end();
        if (!own) fusion_.is_stored[leaf] = true;
      }
      for (const ValueId member : cluster.members) {
        if (found_.is_forced[member]) fusion_.is_stored[member] = true;
      }
    }
    for (Cluster& cluster : fusion_.clusters) {
      std::ranges::copy_if(cluster.members, std::back_inserter(cluster.stored),
                           [&](ValueId value) { return fusion_.is_stored[value]; });
    }
  }

  const Graph& graph_;
  const Options& options_;
  const Candidates found_;
  std::vector<uint32_t> home_;  // by value: its cluster
  Fusion fusion_;
};

}  // namespace

Positions positions_of(const Graph& graph, const Cluster& cluster, const Index& item, const Index& r, IndexSpace& space) {
  if (cluster.form == Cluster::Form::kMap) return {item, item};
  const Node& node = graph.nodes[cluster.rows_of];
  // No value holds the terms of a product, so nothing lies where they do.
  if (node.kind == Kind::kProduct) return {item, space.sum(space.scaled(item, 2), space.scaled(r, 3))};
  const Coords at = space.split(item, graph.values[node.out[0]].sizes);
  const Read element = row_element(graph, node, at, r, space);
  return {item, space.linear(element.at, graph.values[node.in[0]].sizes)};
}

Fusion fuse(const Graph& graph, const Options& options) { return Fuser(graph, options).fuse(); }

std::string Fusion::text(const Graph& graph) const {
  std::string text;
  for (size_t i = 0; i < clusters.size(); ++i) {
    const Cluster& cluster = clusters[i];
    text += "cluster " + std::to_string(i) + ": ";
    if (cluster.form == Cluster::Form::kMap) text += std::to_string(cluster.items) + " elements";
    if (cluster.form == Cluster::Form::kRows)
      text += std::to_string(cluster.items) + " rows of " + std::to_string(cluster.length);
    if (cluster.form == Cluster::Form::kUnfusable) text += "unfusable";
    for (const ValueId value : cluster.members) {
      const Node& node = graph.nodes[graph.values[value].producer];
      const bool local = std::ranges::find(cluster.stored, value) == cluster.stored.end();
      text += (value == cluster.members[0] ? ": " : ", ") + op_name(node) + " %" + std::to_string(value) +
              (local ? "" : " -> " + type_text(graph.values[value]));
    }
    text += "\n";
  }
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

}  // namespace ltc::kernels
