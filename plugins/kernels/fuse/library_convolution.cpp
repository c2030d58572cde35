#include "kernels/fuse/library_convolution.h"

#include <algorithm>
#include <utility>

#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

constexpr std::string_view kSettings[] = {"stride", "padding", "dilation"};

std::string_view view(ltc_string text) { return {text.data ? text.data : "", text.size}; }

Sizes sizes_of(const ltc_type& type) { return {type.sizes, type.sizes + type.rank}; }

// The numbers of an attribute, one per dim of space; one stands for all.
Sizes numbers(const ltc_node& node, std::string_view name, size_t dims) {
  for (size_t i = 0; i < node.attr_count; ++i) {
    const ltc_attr& attr = *node.attrs[i];
    if (view(attr.name) != name || attr.count == 0) continue;
    const Sizes given(attr.value.ints, attr.value.ints + attr.count);
    return given.size() == dims ? given : Sizes(dims, given[0]);
  }
  return Sizes(dims, name == "padding" || name == "transposed" ? 0 : 1);
}

bool is_taken(const LibraryConvolution& c) {
  const size_t rank = c.x.size();
  if (rank < 3 || rank > 5 || c.w.size() != rank || c.y.size() != rank) return false;
  for (const Sizes* sizes : {&c.x, &c.w, &c.y}) {
    if (count_of(*sizes) <= 0 || count_of(*sizes) > INT32_MAX) return false;
  }
  if (c.x[0] != c.y[0] || c.x[1] != c.w[1] * c.groups || c.y[1] != c.w[0] || c.w[0] % c.groups != 0) return false;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const int64_t reach = c.x[i + 2] + 2 * c.padding[i] - c.dilation[i] * (c.w[i + 2] - 1) - 1;
    if (c.padding[i] < 0 || c.stride[i] <= 0 || reach < 0 || reach / c.stride[i] + 1 != c.y[i + 2]) return false;
  }
  return true;
}

Attr ints(std::string name, std::vector<int64_t> values) { return {std::move(name), LTC_ATTR_INTS, std::move(values), {}}; }

// `result`: a value of the graph, whose sizes are known.
void add_pass(Graph& graph, const Node& node, ConvolutionPass pass, ValueId a, ValueId b, ValueId result) {
  const size_t dims = graph.values[a].sizes.size() - 2;
  std::vector<Attr> attrs{ints("pass", {static_cast<int64_t>(pass)}), ints("groups", {node.integer("groups", 1)})};
  for (const std::string_view name : kSettings) {
    const auto& given = node.integers(name);
    const int64_t otherwise = name == "padding" ? 0 : 1;
    attrs.push_back(ints(std::string(name), given.size() == dims ? given : Sizes(dims, given.empty() ? otherwise : given[0])));
  }
  graph.append({node.op, Kind::kLibraryConvolution, {a, b}, {result}, std::move(attrs), node.source});
}

// The sum over all but the channels.
void add_bias_gradient(Graph& graph, const Node& node, ValueId result) {
  ValueId g = node.in[0];
  const Value gradient = graph.values[g], bias = graph.values[result];
  const ltc_dtype in = is_half(bias.dtype) ? ltc_dtype{LTC_F32} : bias.dtype;
  if (in != bias.dtype) g = graph.add_node(Kind::kCast, {g}, {}, in, gradient.sizes, node.source);
  std::vector<int64_t> dims;
  for (size_t dim = 0; dim < gradient.sizes.size(); ++dim) {
    if (dim != 1) dims.push_back(static_cast<int64_t>(dim));
  }
  ValueId sum = graph.add_node(Kind::kReduce, {g}, {ints("dim", dims)}, in, bias.sizes, node.source);
  graph.nodes.back().op = find_op("aten::sum.dim_IntList");
  if (in != bias.dtype) sum = graph.add_node(Kind::kCast, {sum}, {}, bias.dtype, bias.sizes, node.source);
  graph.nodes.back().out[0] = result;
  graph.values[result].producer = graph.values[sum].producer;
}

}  // namespace

bool is_library_convolution(const ltc_graph& graph, const ltc_node& node) {
  const bool backward = view(node.name).ends_with("_backward");
  const ltc_type &x = *graph.types[node.inputs[backward ? 1 : 0]], &w = *graph.types[node.inputs[backward ? 2 : 1]],
                 &y = *graph.types[backward ? node.inputs[0] : node.outputs[0]];
  if (x.rank < 3) return false;
  const size_t dims = x.rank - 2;
  LibraryConvolution c{ConvolutionPass::kForward, x.dtype, sizes_of(x), sizes_of(w), sizes_of(y), {}, {}, {}, 1};
  c.stride = numbers(node, "stride", dims);
  c.padding = numbers(node, "padding", dims);
  c.dilation = numbers(node, "dilation", dims);
  c.groups = numbers(node, "groups", 1)[0];
  if (numbers(node, "transposed", 1)[0]) std::swap(c.x, c.y);
  return (is_float(x.dtype) || is_half(x.dtype)) && w.dtype == x.dtype && y.dtype == x.dtype && is_taken(c);
}

void add_library_convolutions(Graph& graph, const Node& node) {
  const bool transposed = node.integer("transposed", 0) != 0;
  if (node.kind == Kind::kConvolution) {
    const ConvolutionPass pass = transposed ? ConvolutionPass::kInputGradient : ConvolutionPass::kForward;
    return add_pass(graph, node, pass, node.in[0], node.in[1], node.out[0]);
  }
  const ValueId g = node.in[0], x = node.in[1], w = node.in[2];
  if (node.out[0] != kNone) {
    add_pass(graph, node, transposed ? ConvolutionPass::kForward : ConvolutionPass::kInputGradient, g, w, node.out[0]);
  }
  if (node.out[1] != kNone) {
    add_pass(graph, node, ConvolutionPass::kWeightGradient, transposed ? g : x, transposed ? x : g, node.out[1]);
  }
  if (node.out[2] != kNone) add_bias_gradient(graph, node, node.out[2]);
}

LibraryConvolution library_convolution(const Graph& graph, const Node& node) {
  const auto sizes = [&](ValueId value) {
    Sizes given = graph.values[value].sizes;
    if (given.size() == 3) given.insert(given.begin() + 2, 1);
    return given;
  };
  const auto setting = [&](std::string_view name, int64_t otherwise) {
    Sizes given = node.integers(name);
    if (given.size() == 1) given.insert(given.begin(), otherwise);
    return given;
  };
  const auto pass = static_cast<ConvolutionPass>(node.integers("pass")[0]);
  const Sizes a = sizes(node.in[0]), b = sizes(node.in[1]), result = sizes(node.out[0]);
  LibraryConvolution c{pass, graph.values[node.in[0]].dtype, a, b, result, {}, {}, {}, node.integers("groups")[0]};
  if (pass == ConvolutionPass::kInputGradient) std::swap(c.x, c.y);
  if (pass == ConvolutionPass::kWeightGradient) std::swap(c.w, c.y);
  c.stride = setting("stride", 1);
  c.padding = setting("padding", 0);
  c.dilation = setting("dilation", 1);
  return c;
}

}  // namespace ltc::kernels
