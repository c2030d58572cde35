#include "kernels/fuse/candidates.h"

#include <algorithm>

#include "kernels/fuse/attention.h"
#include "kernels/fuse/products.h"
#include "kernels/fuse/scaled_product.h"
#include "kernels/graph/reads.h"

namespace ltc::kernels {
namespace {

// An expression with more ops than this is cut, so that kernels stay of a size that compilers like.
constexpr int kLargestExpression = 48;
// A number that depends on little is computed wherever it is needed.
constexpr int kCheapNumber = 16;

bool is_movement(Kind kind) { return kind >= Kind::kReshape && kind <= Kind::kWindows; }
bool computes(Kind kind) { return kind == Kind::kMap || kind == Kind::kCast || kind == Kind::kBits || kind == Kind::kPhilox; }

// Whether the node's operands lie in buffers of their own.
bool reads_buffers(const Node& node) {
  return node.kind == Kind::kSort || node.kind == Kind::kLibraryConvolution || node.kind == Kind::kScaledProduct ||
         node.kind == Kind::kCollective;
}

class Finder {
 public:
  Finder(const Graph& graph, const Options& options) : graph_(graph), options_(options) {
    found_.is_live.assign(graph.nodes.size(), false);
    found_.is_candidate.assign(graph.values.size(), false);
    found_.is_forced.assign(graph.values.size(), false);
    uses_.assign(graph.values.size(), 0);
    cost_.assign(graph.values.size(), 0);
  }

  Candidates find() {
    for (const ValueId value : graph_.outputs) ++uses_[value], force(value);
    for (NodeId id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) count_uses(id);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      if (found_.is_live[id]) visit(graph_.nodes[id]);
    }
    return std::move(found_);
  }

 private:
  void force(ValueId value) {
    if (graph_.values[value].producer == kNone) return;
    found_.is_forced[value] = found_.is_candidate[value] = true;
  }

  // Uses the matrix behind views, where strides can express them; the operands of a library's product may lie so.
  void force_matrix(ValueId operand) {
    const bool is_matrix = graph_.values[operand].sizes.size() == 3;
    const auto matrix = is_matrix ? strided_matrix(graph_, operand, options_) : std::nullopt;
    force(matrix ? matrix->value : operand);
  }

  // A view passes the uses of its result on.
  void count_uses(NodeId id) {
    const Node& node = graph_.nodes[id];
    int uses = 0;
    for (const ValueId value : node.out) {
      if (value != kNone) uses += uses_[value];
    }
    if (uses == 0) return;
    found_.is_live[id] = true;
    const bool passes = is_movement(node.kind) && !found_.is_forced[node.out[0]];
    for (const ValueId value : node.in) {
      if (value != kNone) uses_[value] += passes ? uses : 1;
    }
  }

  void visit(const Node& node) {
    const bool unfusable = is_unfusable(graph_, node, options_);
    if (unfusable || is_reduction(graph_, node, options_)) {
      for (const ValueId value : node.out) {
        if (value == kNone || uses_[value] == 0) continue;
        found_.is_candidate[value] = true;
        if (unfusable) found_.is_forced[value] = true;
      }
    }
    for (size_t i = 0; i < node.in.size(); ++i) {
      const ValueId operand = node.in[i];
      if (operand == kNone) continue;
      if (node.kind == Kind::kAttention) {
        force(attention_operand(graph_, node, i).value);
      } else if (node.kind == Kind::kScaledProduct && i < 2) {
        force(scaled_operand(graph_, node, i).value);
      } else if (unfusable && node.kind == Kind::kProduct) {
        force_matrix(operand);
      } else if (reads_buffers(node) || reads_other_size(graph_, node)) {
        force(operand);
      }
      if (repeats(node, operand)) stop_recomputing(operand);
    }
    const ValueId result = node.out[0];
    if (result == kNone || found_.is_candidate[result]) return;
    for (const ValueId operand : node.in) {
      if (operand != kNone && !found_.is_candidate[operand]) cost_[result] += cost_[operand];
    }
    if (!computes(node.kind)) return;
    cost_[result] += node.kind == Kind::kPhilox ? kCheapNumber + 1 : 1;
    const bool cheap = graph_.values[result].count == 1 && cost_[result] <= kCheapNumber;
    if ((uses_[result] > 1 && !cheap) || cost_[result] > kLargestExpression) found_.is_candidate[result] = true;
  }

  // Whether elements of the operand are read several times.
  bool repeats(const Node& node, ValueId operand) const {
    if (node.kind == Kind::kPad || node.kind == Kind::kCat || node.kind == Kind::kPack) return false;
    if (node.kind == Kind::kProduct) return !is_unfusable(graph_, node, options_);
    int64_t count = 0;
    for (const ValueId value : node.out) {
      if (value != kNone) count = std::max(count, graph_.values[value].count);
    }
    return count > graph_.values[operand].count && !is_reduction(graph_, node, options_);
  }

  // The node below any views is computed once.
  void stop_recomputing(ValueId value) {
    const NodeId producer = graph_.values[value].producer;
    if (producer == kNone || found_.is_candidate[value] || cost_[value] == 0) return;
    const Node& node = graph_.nodes[producer];
    if (graph_.values[value].count == 1 && cost_[value] <= kCheapNumber) return;
    if (computes(node.kind)) {
      found_.is_candidate[value] = true;
      return;
    }
    for (const ValueId operand : node.in) stop_recomputing(operand);
  }

  const Graph& graph_;
  const Options& options_;
  Candidates found_;
  std::vector<int> uses_, cost_;  // by value; cost: ops computed again at each read
};

}  // namespace

bool is_unfusable(const Graph& graph, const Node& node, const Options& options) {
  switch (node.kind) {
    case Kind::kScan:
    case Kind::kScatter:
    case Kind::kScatterAdd:
    case Kind::kStridedScatter:
    case Kind::kSort:
    case Kind::kAttention:
    case Kind::kLibraryConvolution:
    case Kind::kCollective:
    case Kind::kScaledProduct: return true;
    case Kind::kProduct: {
      const Sizes& x = graph.values[node.in[0]].sizes;
      return options.library_product &&
             options.library_product(graph.values[node.in[0]].dtype, x[0], x[1], product_columns(graph, node), x[2]);
    }
    default: return false;
  }
}

bool is_reduction(const Graph& graph, const Node& node, const Options& options) {
  return node.kind == Kind::kReduce || node.kind == Kind::kArgmax ||
         (node.kind == Kind::kProduct && !is_unfusable(graph, node, options));
}

Candidates find_candidates(const Graph& graph, const Options& options) { return Finder(graph, options).find(); }

}  // namespace ltc::kernels
