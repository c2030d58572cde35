#include <unordered_map>

#include "core/base/hash.h"
#include "core/compile/passes/passes.h"
#include "core/ir/substitution.h"

namespace ltc {
namespace {

uint64_t hash_of(const Node& node) {
  const uint64_t hash = hash_mix(node.op, node.attrs);
  return hash_bytes(hash, node.inputs.data(), node.inputs.size() * sizeof(ValueId));
}

bool equal(const Node& a, const Node& b) {
  return a.op == b.op && a.attrs == b.attrs && a.inputs == b.inputs && a.outputs.size() == b.outputs.size();
}

// Whether `node` can be replaced by the equal `first` result by result.
bool can_merge(const Graph& graph, const Substitution& substitute, const Node& first, const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId kept = first.outputs[i], dropped = node.outputs[i];
    if (kept == kNone || dropped == kNone) continue;
    if (!same_shape(graph.type(kept), graph.type(dropped)) || !substitute.allowed(dropped, kept)) return false;
  }
  return true;
}

void merge(Substitution& substitute, Node& first, const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    if (first.outputs[i] == kNone) {
      first.outputs[i] = node.outputs[i];
    } else {
      substitute.replace(node.outputs[i], first.outputs[i]);
    }
  }
}

}  // namespace

void cse(Graph& graph) {
  Substitution substitute(graph);
  std::vector<Node> kept;
  std::unordered_multimap<uint64_t, size_t> by_hash;
  const auto find = [&](uint64_t hash, const Node& node) -> Node* {
    const auto [begin, end] = by_hash.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      Node& first = kept[it->second];
      if (equal(first, node) && can_merge(graph, substitute, first, node)) return &first;
    }
    return nullptr;
  };
  for (Node& node : graph.nodes) {
    substitute.apply(node.inputs);
    const uint64_t hash = hash_of(node);
    if (Node* first = find(hash, node)) {
      merge(substitute, *first, node);
    } else {
      by_hash.emplace(hash, kept.size());
      kept.push_back(std::move(node));
    }
  }
  substitute.apply(graph.outputs);
  graph.nodes = std::move(kept);
}

}  // namespace ltc
