#include "kernels/fuse/scaled_product.h"

#include <algorithm>

#include "kernels/graph/dtype.h"

namespace ltc::kernels {
namespace {

// Rows of an operand begin at multiples of so many elements, 16 bytes, and are such multiples long.
constexpr int64_t kGranule = 16;
constexpr size_t kBias = 4, kResultScale = 5;  // inputs that may be absent

bool has_sizes(const ltc_type& type, const Sizes& sizes) {
  return std::equal(type.sizes, type.sizes + type.rank, sizes.begin(), sizes.end());
}

bool is_number(const ltc_type& type) {
  return type.dtype == LTC_F32 && std::all_of(type.sizes, type.sizes + type.rank, [](int64_t size) { return size == 1; });
}

bool sizes_fit(const ltc_type& a, const ltc_type& b, const ltc_type& c) {
  if (a.rank != 2 || b.rank != 2) return false;
  const int64_t rows = a.sizes[0], length = a.sizes[1], columns = b.sizes[1];
  return has_sizes(b, {length, columns}) && has_sizes(c, {rows, columns}) && std::min({rows, length, columns}) > 0 &&
         std::max({rows, length, columns}) <= INT32_MAX && length % kGranule == 0 && columns % kGranule == 0;
}

}  // namespace

bool is_scaled_product(const plugin::Node& node) {
  const std::span<const uint32_t> inputs = node.inputs();
  if (inputs.size() < kBias || inputs.size() > kResultScale + 1 || node.outputs().size() != 1) return false;
  if (node.has_input(kResultScale)) return false;
  const bool with_bias = node.has_input(kBias);
  for (size_t i = 0; i < kBias + with_bias; ++i) {
    if (!node.has_input(i) || node.graph.is_scalar(inputs[i])) return false;
  }
  const ltc_type &a = node.input(0), &b = node.input(1), &c = node.output(0);
  if (!is_f8(a.dtype) || !is_f8(b.dtype) || (a.dtype == LTC_F8_E5M2 && b.dtype == LTC_F8_E5M2)) return false;
  if (!sizes_fit(a, b, c) || !is_number(node.input(2)) || !is_number(node.input(3))) return false;
  if (with_bias) return is_half(c.dtype) && node.input(kBias).dtype == c.dtype && has_sizes(node.input(kBias), {b.sizes[1]});
  return is_half(c.dtype) || c.dtype == LTC_F32;
}

void add_scaled_product(Graph& graph, const Node& node) {
  Node product = node;
  const Value b = graph.values[node.in[1]];
  product.in[1] = graph.add_node(Kind::kPermute, {node.in[1]}, {{"dims", LTC_ATTR_INTS, {1, 0}, {}}}, b.dtype,
                                 {b.sizes[1], b.sizes[0]}, node.source);
  std::erase(product.in, kNone);
  graph.append(std::move(product));
}

StridedMatrix scaled_operand(const Graph& graph, const Node& node, size_t i) {
  const Sizes& sizes = graph.values[node.in[i]].sizes;
  if (const auto view = strided_view(graph, node.in[i])) {
    const int64_t row = view->strides[0];
    const bool rows_fit = sizes[0] == 1 || (row >= sizes[1] && row % kGranule == 0);
    if (rows_fit && view->strides[1] == 1 && view->offset >= 0 && view->offset % kGranule == 0) {
      return {view->value, view->offset, 0, row, 1};
    }
  }
  return {node.in[i], 0, 0, sizes[1], 1};
}

}  // namespace ltc::kernels
