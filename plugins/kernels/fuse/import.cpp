#include "kernels/fuse/import.h"

#include <algorithm>

#include "kernels/fuse/attention.h"
#include "kernels/fuse/collective.h"
#include "kernels/fuse/convolution.h"
#include "kernels/fuse/library_convolution.h"
#include "kernels/fuse/scaled_product.h"
#include "kernels/graph/dtype.h"
#include "ltc/entry.h"
#include "ltc/opset.h"

namespace ltc::kernels {
namespace {

bool in_set(std::string_view set, ltc_dtype dtype) {
  const char letter = is_half(dtype)      ? 'h'
                      : is_f8(dtype)      ? 'q'
                      : is_float(dtype)   ? 'f'
                      : dtype == LTC_BOOL ? 'b'
                      : dtype == LTC_C64  ? 'c'
                                          : 'i';
  return is_computed(dtype) && set.find(letter) != set.npos;
}

// Whether random bytes are shared out to such elements.
bool is_random(ltc_dtype dtype) { return dtype == LTC_I32 || dtype == LTC_I64 || is_float(dtype); }

Attr import_attr(const ltc_attr& attr) {
  Attr copy{std::string(plugin::view(attr.name)), attr.kind, {}, {}};
  const bool floats = attr.kind == LTC_ATTR_FLOAT || attr.kind == LTC_ATTR_FLOATS;
  const bool text = attr.kind == LTC_ATTR_STRING || attr.kind == LTC_ATTR_STRINGS;
  if (floats) copy.floats.assign(attr.value.floats, attr.value.floats + attr.count);
  if (!floats && !text && attr.count) copy.ints.assign(attr.value.ints, attr.value.ints + attr.count);
  return copy;
}

Node import_node(const ltc_node& node, uint32_t source) {
  const OpRow* row = find_op(plugin::view(node.name));
  Node copy{row, row->kind, {}, {}, {}, source};
  copy.in.assign(node.inputs, node.inputs + node.input_count);
  copy.out.assign(node.outputs, node.outputs + node.output_count);
  for (size_t i = 0; i < node.attr_count; ++i) copy.attrs.push_back(import_attr(*node.attrs[i]));
  return copy;
}

// Whether only a library computes the node.
bool needs_library(const ltc_graph& graph, const OpRow& row, const ltc_node& node) {
  return row.kind == Kind::kConvolutionBackward ||
         (row.kind == Kind::kConvolution && is_half(graph.types[node.inputs[0]]->dtype));
}
bool for_library(const ltc_graph& graph, const ltc_node& node, const Extras& extras) {
  return extras.convolution && is_library_convolution(graph, node);
}

}  // namespace

bool can_compute(const plugin::Node& node, const Extras& extras) {
  const ltc_graph& graph = node.graph.abi;
  const OpRow* row = find_op(node.name());
  if (!row || !node.graph.knows_flags()) return false;
  if (!ltc_node_matches(&node.abi, node.abi.op == 0 ? row->operands : ltc_op_operands(node.abi.op))) return false;
  if (row->kind == Kind::kAttention) return extras.attention && is_attention(node);
  if (row->kind == Kind::kCollective) return extras.collectives && is_library_collective(node);
  if (row->kind == Kind::kScaledProduct) return extras.scaled_product && is_scaled_product(node);
  const auto computes = [&](ltc_dtype dtype) { return in_set(row->dtypes, dtype); };
  return plugin::matches_types(node, row->types, computes) && plugin::has_usual_form(node) &&
         (row->name != "ltc::philox" || is_random(node.output(0).dtype)) &&
         (!needs_library(graph, *row, node.abi) || for_library(graph, node.abi, extras));
}

Graph import_graph(const ltc_graph& graph, const Extras& extras, int64_t points_by_image) {
  Graph copy;
  for (size_t i = 0; i < graph.value_count; ++i) {
    const ltc_type& type = *graph.types[i];
    copy.add_value(type.dtype, {type.sizes, type.sizes + type.rank});
  }
  for (size_t i = 0; i < graph.param_count; ++i) {
    const ltc_param& param = *graph.params[i];
    copy.params.push_back({param.value, (param.flags & LTC_PARAM_SCALAR) != 0, param.alias_output});
  }
  for (size_t i = 0; i < graph.node_count; ++i) {
    Node node = import_node(*graph.nodes[i], static_cast<uint32_t>(i));
    if (node.kind == Kind::kConvolution || node.kind == Kind::kConvolutionBackward) {
      for_library(graph, *graph.nodes[i], extras) ? add_library_convolutions(copy, node)
                                                  : expand_convolution(copy, node, points_by_image);
      continue;
    }
    if (node.kind == Kind::kCollective) import_reduction(*graph.nodes[i], node);
    if (node.kind == Kind::kScaledProduct) {
      add_scaled_product(copy, node);
      continue;
    }
    copy.append(std::move(node));
  }
  copy.outputs.assign(graph.outputs, graph.outputs + graph.output_count);
  return copy;
}

}  // namespace ltc::kernels
