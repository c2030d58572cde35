#include "kernels/fuse/convolution.h"

namespace ltc::kernels {
namespace {

Attr ints(std::string name, std::vector<int64_t> values) { return {std::move(name), LTC_ATTR_INTS, std::move(values), {}}; }

// One number per dim, or one for all.
Sizes per_dim(const std::vector<int64_t>& given, size_t dims, int64_t otherwise) {
  if (given.size() == dims) return given;
  return Sizes(dims, given.empty() ? otherwise : given[0]);
}

// The weights as [groups, channels out, channels in * window], per group.
ValueId weight_matrix(Graph& graph, const Node& node, int64_t groups, int64_t in, int64_t out, int64_t window) {
  const ValueId weight = node.in[1];
  const ltc_dtype dtype = graph.values[weight].dtype;
  const auto reshape = [&](ValueId from, Sizes sizes) {
    return graph.add_node(Kind::kReshape, {from}, {}, dtype, std::move(sizes), node.source);
  };
  if (node.integer("transposed", 0) == 0) return reshape(weight, {groups, out, in * window});
  const ValueId split = reshape(weight, {groups, in, out, window});
  const ValueId swapped =
      graph.add_node(Kind::kPermute, {split}, {ints("dims", {0, 2, 1, 3})}, dtype, {groups, out, in, window}, node.source);
  return reshape(swapped, {groups, out, in * window});
}

}  // namespace

void expand_convolution(Graph& graph, const Node& node, int64_t points_by_image) {
  const Sizes x = graph.values[node.in[0]].sizes, w = graph.values[node.in[1]].sizes, y = graph.values[node.out[0]].sizes;
  const ltc_dtype dtype = graph.values[node.out[0]].dtype;
  const int64_t groups = node.integer("groups", 1), batch = x[0], in = x[1] / groups, out = y[1] / groups;
  const int64_t window = count_of({w.begin() + 2, w.end()}), points = count_of({y.begin() + 2, y.end()});
  const size_t dims = x.size() - 2;
  const bool by_image = groups == 1 && points >= points_by_image;

  std::vector<Attr> how{ints("kernel", {w.begin() + 2, w.end()}),
                        ints("out", {y.begin() + 2, y.end()}),
                        ints("stride", per_dim(node.integers("stride"), dims, 1)),
                        ints("padding", per_dim(node.integers("padding"), dims, 0)),
                        ints("dilation", per_dim(node.integers("dilation"), dims, 1)),
                        ints("transposed", {node.integer("transposed", 0)}),
                        ints("groups", {groups}),
                        ints("by_image", {by_image})};
  const int64_t products = by_image ? batch : groups, columns_of_each = by_image ? points : batch * points;
  const auto add = [&](Kind kind, std::vector<ValueId> from, std::vector<Attr> attrs, Sizes sizes) {
    return graph.add_node(kind, std::move(from), std::move(attrs), dtype, std::move(sizes), node.source);
  };
  const ValueId columns = add(Kind::kWindows, {node.in[0]}, std::move(how), {products, in * window, columns_of_each});
  ValueId weights = weight_matrix(graph, node, groups, in, out, window);
  if (by_image) weights = add(Kind::kExpand, {weights}, {}, {products, out, in * window});
  ValueId result = add(Kind::kProduct, {weights, columns}, {}, {products, out, columns_of_each});
  if (!by_image) {
    const ValueId split = add(Kind::kReshape, {result}, {}, {groups, out, batch, points});
    result = add(Kind::kPermute, {split}, {ints("dims", {2, 0, 1, 3})}, {batch, groups, out, points});
  }
  // The result is a value that the graph has already.
  const ValueId reshaped = add(Kind::kReshape, {result}, {}, y);
  graph.nodes.back().out[0] = node.out[0];
  graph.values[node.out[0]].producer = graph.values[reshaped].producer;
}

}  // namespace ltc::kernels
