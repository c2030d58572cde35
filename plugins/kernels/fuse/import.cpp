#include "kernels/fuse/import.h"

#include <algorithm>

#include "kernels/fuse/attention.h"
#include "kernels/fuse/convolution.h"
#include "kernels/fuse/library_convolution.h"
#include "kernels/fuse/scaled_product.h"
#include "kernels/graph/dtype.h"
#include "ltc/entry.h"
#include "ltc/opset.h"

namespace ltc::kernels {
namespace {

std::string_view view(ltc_string text) { return {text.data ? text.data : "", text.size}; }

bool in_set(std::string_view set, ltc_dtype dtype) {
  const char letter = is_half(dtype)      ? 'h'
                      : is_f8(dtype)      ? 'q'
                      : is_float(dtype)   ? 'f'
                      : dtype == LTC_BOOL ? 'b'
                      : dtype == LTC_C64  ? 'c'
                                          : 'i';
  return is_computed(dtype) && set.find(letter) != set.npos;
}

// Matches operands or results with the letters of a row.
class Matcher {
 public:
  Matcher(const ltc_graph& graph, const std::vector<bool>& is_scalar, const OpRow& row)
      : graph_(graph), is_scalar_(is_scalar), row_(row) {}

  bool operands(std::string_view letters, const ltc_node& node) {
    size_t next = 0;
    for (const char letter : letters) {
      if (letter == '+') {
        while (next < node.input_count) {
          if (!fits('T', node.inputs[next++])) return false;
        }
      } else if (letter == 's') {
        next += next < node.input_count && node.inputs[next] != LTC_NONE && is_scalar_[node.inputs[next]];
      } else if (letter == '-') {
        if (next < node.input_count && node.inputs[next++] != LTC_NONE) return false;
      } else if (next == node.input_count || !fits(letter, node.inputs[next++])) {
        return false;
      }
    }
    return next == node.input_count;
  }

  bool results(std::string_view letters, const ltc_node& node) {
    if (letters.size() != node.output_count) return false;
    for (size_t i = 0; i < letters.size(); ++i) {
      if (node.outputs[i] != LTC_NONE && !fits(letters[i], node.outputs[i])) return false;
    }
    return true;
  }

 private:
  bool fits(char letter, uint32_t value) {
    if (value == LTC_NONE) return false;
    const ltc_dtype dtype = graph_.types[value]->dtype;
    if (letter == 'N' && is_scalar_[value]) return in_set(row_.dtypes, dtype);
    if (is_scalar_[value]) return false;
    if (letter == 'b') return dtype == LTC_BOOL;
    if (letter == 'i') return dtype == LTC_I64;
    if (letter == 'A') return in_set(row_.dtypes, dtype);
    if (shared_ == 0) shared_ = dtype;
    return dtype == shared_ && in_set(row_.dtypes, dtype);
  }

  const ltc_graph& graph_;
  const std::vector<bool>& is_scalar_;
  const OpRow& row_;
  ltc_dtype shared_ = 0;
};

// Conditions that a row does not state: alpha of add, ranks of what is joined (an empty vector joins anything), sizes of elements
// that bytes are shared out to.
bool is_canonical(const OpRow& row, const ltc_graph& graph, const ltc_node& node) {
  for (size_t i = 0; i < node.attr_count; ++i) {
    const ltc_attr& attr = *node.attrs[i];
    if (view(attr.name) != "alpha") continue;
    if (attr.kind == LTC_ATTR_FLOAT ? attr.value.floats[0] != 1 : attr.value.ints[0] != 1) return false;
  }
  const auto has_rank_of_result = [&](uint32_t value) { return graph.types[value]->rank == graph.types[node.outputs[0]]->rank; };
  if (row.kind == Kind::kCat && !std::all_of(node.inputs, node.inputs + node.input_count, has_rank_of_result)) return false;
  if (row.name == "ltc::philox") {
    const ltc_dtype dtype = graph.types[node.outputs[0]]->dtype;
    return dtype == LTC_I32 || dtype == LTC_I64 || is_float(dtype);
  }
  return true;
}

Attr import_attr(const ltc_attr& attr) {
  Attr copy{std::string(view(attr.name)), attr.kind, {}, {}};
  const bool floats = attr.kind == LTC_ATTR_FLOAT || attr.kind == LTC_ATTR_FLOATS;
  const bool text = attr.kind == LTC_ATTR_STRING || attr.kind == LTC_ATTR_STRINGS;
  if (floats) copy.floats.assign(attr.value.floats, attr.value.floats + attr.count);
  if (!floats && !text && attr.count) copy.ints.assign(attr.value.ints, attr.value.ints + attr.count);
  return copy;
}

Node import_node(const ltc_node& node, uint32_t source) {
  const OpRow* row = find_op(view(node.name));
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

std::vector<bool> scalar_params(const ltc_graph& graph) {
  std::vector<bool> is_scalar(graph.value_count, false);
  for (size_t i = 0; i < graph.param_count; ++i) {
    if (graph.params[i]->flags & LTC_PARAM_SCALAR) is_scalar[graph.params[i]->value] = true;
  }
  return is_scalar;
}

bool can_compute(const ltc_graph& graph, const std::vector<bool>& is_scalar, const ltc_node& node, const Extras& extras) {
  const OpRow* row = find_op(view(node.name));
  if (!row || !ltc_node_matches(&node, node.op == 0 ? row->operands : ltc_op_operands(node.op))) return false;
  if (row->kind == Kind::kAttention) return extras.attention && is_attention(graph, is_scalar, node);
  if (row->kind == Kind::kScaledProduct) return extras.scaled_product && is_scaled_product(graph, is_scalar, node);
  const size_t colon = row->types.find(':');
  Matcher matcher(graph, is_scalar, *row);
  return matcher.operands(row->types.substr(0, colon), node) && matcher.results(row->types.substr(colon + 1), node) &&
         is_canonical(*row, graph, node) && (!needs_library(graph, *row, node) || for_library(graph, node, extras));
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
