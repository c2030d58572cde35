#include "kernels/fuse/products.h"

#include <algorithm>

#include "kernels/fuse/candidates.h"
#include "kernels/graph/dtype.h"
#include "kernels/graph/reads.h"

namespace ltc::kernels {
namespace {

// Works on a graph whose nodes are in order, and leaves it so.
class Narrower {
 public:
  Narrower(Graph& graph, const Options& options) : old_(graph), new_(graph), options_(options), uses_(graph.values.size(), 0) {
    new_.nodes.clear();
    for (const ValueId value : graph.outputs) uses_[value] += 2;  // its dtype stays
    for (const Node& node : graph.nodes) {
      for (const ValueId value : node.in) {
        if (value != kNone) ++uses_[value];
      }
    }
  }

  void narrow() {
    for (Node node : old_.nodes) {
      if (node.kind == Kind::kProduct && old_.values[node.out[0]].dtype == LTC_F32) narrow(node);
      new_.append(std::move(node));
    }
    old_ = std::move(new_);
  }

 private:
  void narrow(Node& node) {
    const ltc_dtype half = half_below(node.in[0]);
    if (half == 0 || half_below(node.in[1]) != half) return;
    const Sizes &a = old_.values[node.in[0]].sizes, &c = old_.values[node.out[0]].sizes;
    if (!options_.library_product(half, a[0], a[1], c[2], a[2])) return;
    for (ValueId& operand : node.in) operand = narrowed(operand, half);
    narrow_result(node.out[0], half);
  }

  // The dtype from which the value was widened, below any views; 0: it was not.
  ltc_dtype half_below(ValueId value) const {
    while (old_.values[value].producer != kNone) {
      const Node& node = old_.nodes[old_.values[value].producer];
      const ltc_dtype from = old_.values[node.in.empty() ? value : node.in[0]].dtype;
      if (node.kind == Kind::kCast) return is_half(from) && !old_.is_scalar_param(node.in[0]) ? from : 0;
      if (!is_view(node.kind)) return 0;
      value = node.in[0];
    }
    return 0;
  }

  ValueId narrowed(ValueId value, ltc_dtype half) {
    Node node = old_.nodes[old_.values[value].producer];
    if (node.kind == Kind::kCast) return node.in[0];
    node.in[0] = narrowed(node.in[0], half);
    node.out[0] = new_.add_value(half, old_.values[value].sizes);
    const ValueId result = node.out[0];
    new_.append(std::move(node));
    return result;
  }

  // The cast at the end then has nothing left to do.
  void narrow_result(ValueId value, ltc_dtype half) {
    std::vector<ValueId> chain{value};
    while (uses_[chain.back()] == 1) {
      const auto reads = [&](const Node& node) { return std::ranges::count(node.in, chain.back()) > 0; };
      const Node& reader = *std::ranges::find_if(old_.nodes, reads);
      const bool casts = reader.kind == Kind::kCast;
      if (casts && old_.values[reader.out[0]].dtype == half) {
        for (const ValueId inner : chain) new_.values[inner].dtype = half;
        return;
      }
      if (casts || !is_view(reader.kind)) return;
      chain.push_back(reader.out[0]);
    }
  }

  Graph& old_;
  Graph new_;
  const Options& options_;
  std::vector<int> uses_;
};

}  // namespace

void narrow_products(Graph& graph, const Options& options) {
  if (options.library_product) Narrower(graph, options).narrow();
}

void pack_products(Graph& graph, const Options& options) {
  if (options.tile_columns == 0) return;
  Graph packed = graph;
  packed.nodes.clear();
  for (Node& node : graph.nodes) {
    if (node.kind == Kind::kProduct && is_unfusable(graph, node, options)) {
      const Sizes b = graph.values[node.in[1]].sizes;
      const int64_t tiles = (b[2] + options.tile_columns - 1) / options.tile_columns;
      node.in[1] = packed.add_node(Kind::kPack, {node.in[1]}, {}, graph.values[node.in[1]].dtype,
                                   {b[0], tiles, b[1], options.tile_columns}, node.source);
    }
    packed.append(std::move(node));
  }
  graph = std::move(packed);
}

}  // namespace ltc::kernels
