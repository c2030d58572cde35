#include "core/host/validation/graph.h"

#include <span>

#include "ltc/entry.h"

namespace ltc::host::validation {
namespace {

enum class Maker : uint8_t { kNone, kParam, kNode };

// The values of a graph, as far as they are made.
class Values {
 public:
  Values(Call& call, const ltc_graph& graph) : call_(call), graph_(graph), makers_(graph.value_count) {}

  bool make(uint32_t value, Maker maker) {
    const bool is_new = value < makers_.size() && makers_[value] == Maker::kNone;
    if (is_new) makers_[value] = maker;
    return call_.require(is_new, "graph.values", "value ", value, " of ", makers_.size());
  }
  bool is_made(uint32_t value) const { return value < makers_.size() && makers_[value] != Maker::kNone; }
  bool is_of_node(uint32_t value) const { return value < makers_.size() && makers_[value] == Maker::kNode; }
  const ltc_type& type(uint32_t value) const { return *graph_.types[value]; }

 private:
  Call& call_;
  const ltc_graph& graph_;
  std::vector<Maker> makers_;
};

bool is_single(ltc_attr_kind kind) { return kind >= LTC_ATTR_INT && kind <= LTC_ATTR_DTYPE; }

bool is_valid_value(const ltc_attr& attr) {
  if (attr.kind == LTC_ATTR_BOOL) return attr.value.ints[0] == 0 || attr.value.ints[0] == 1;
  if (attr.kind == LTC_ATTR_DTYPE) return is_known_dtype(static_cast<ltc_dtype>(attr.value.ints[0]));
  if (attr.kind != LTC_ATTR_STRING && attr.kind != LTC_ATTR_STRINGS) return true;
  return std::all_of(attr.value.strings, attr.value.strings + attr.count, is_string);
}

bool is_valid(const ltc_attr* attr) {
  if (!attr || attr->struct_size < LTC_SIZE_TO(ltc_attr, value) || attr->name.size == 0 || !is_string(attr->name)) return false;
  if (attr->kind < LTC_ATTR_NONE || attr->kind > LTC_ATTR_STRINGS) return false;
  if (attr->kind == LTC_ATTR_NONE) return attr->count == 0;
  if (is_single(attr->kind) && attr->count != 1) return false;
  return attr->count == 0 || (attr->value.ints && is_valid_value(*attr));
}

bool check_param(Call& call, Values& values, const ltc_param* param) {
  if (!call.sized(param, LTC_SIZE_TO(ltc_param, alias_output)) || !values.make(param->value, Maker::kParam)) return false;
  call.require((param->flags & ~LTC_PARAM_SCALAR) == 0, "graph.param_flags", "flags ", param->flags);
  if (!(param->flags & LTC_PARAM_SCALAR)) return true;
  const ltc_type& type = values.type(param->value);
  const bool is_scalar = type.dtype == LTC_F64 || type.dtype == LTC_I64 || type.dtype == LTC_BOOL || type.dtype == LTC_C128;
  return call.require(is_scalar && type.rank == 0, "graph.scalars", "a param is ", Type::of(type).text());
}

bool check_node(Call& call, Values& values, const ltc_node* node, size_t index) {
  if (!call.sized(node, LTC_SIZE_TO(ltc_node, location))) return false;
  call.require(node->name.size > 0 && is_string(node->name), "graph.node_name", "node ", index);
  call.require(is_string(node->location), "args.string", "the location of node ", index);
  if (!call.not_null(node->inputs, "inputs of a node", node->input_count)) return false;
  if (!call.not_null(node->outputs, "outputs of a node", node->output_count)) return false;
  if (!call.not_null(node->attrs, "attrs of a node", node->attr_count)) return false;
  bool is_good = true;
  for (const uint32_t input : std::span(node->inputs, node->input_count)) {
    const bool is_ready = input == LTC_NONE || values.is_made(input);
    is_good &= call.require(is_ready, "graph.order", "node ", index, " reads value ", input);
  }
  for (const uint32_t output : std::span(node->outputs, node->output_count)) {
    if (output != LTC_NONE) is_good &= values.make(output, Maker::kNode);
  }
  for (size_t i = 0; i < node->attr_count; ++i)
    is_good &= call.require(is_valid(node->attrs[i]), "graph.attrs", "node ", index, ", attribute ", i);
  return is_good;
}

bool check_outputs(Call& call, const Values& values, const ltc_graph& graph) {
  std::vector<uint32_t> seen;
  for (const uint32_t output : std::span(graph.outputs, graph.output_count)) {
    const bool is_good = values.is_of_node(output) && std::ranges::find(seen, output) == seen.end();
    if (!call.require(is_good, "graph.outputs", "value ", output)) return false;
    seen.push_back(output);
  }
  return true;
}

bool check_aliases(Call& call, const Values& values, const ltc_graph& graph) {
  std::vector<bool> is_taken(graph.output_count);
  for (const ltc_param* param : std::span(graph.params, graph.param_count)) {
    const uint32_t alias = param->alias_output;
    if (alias == LTC_NONE) continue;
    bool is_good = alias < graph.output_count && !is_taken[alias] && !(param->flags & LTC_PARAM_SCALAR);
    if (is_good) {
      const Type in = Type::of(values.type(param->value)), out = Type::of(values.type(graph.outputs[alias]));
      is_good = in.dtype == out.dtype && in.bytes() == out.bytes();
      is_taken[alias] = true;
    }
    if (!call.require(is_good, "graph.aliases", "value ", param->value, " and output ", alias)) return false;
  }
  return true;
}

bool is_valid(const ltc_symbolic_number& number, const ltc_symbolic_sizes& symbols, const ltc_graph& graph) {
  if (number.symbol >= symbols.symbol_count || number.scale == 0) return false;
  if (number.attr == LTC_NONE) return number.owner < graph.value_count && number.element < graph.types[number.owner]->rank;
  if (number.owner >= graph.node_count || number.attr >= graph.nodes[number.owner]->attr_count) return false;
  const ltc_attr& attr = *graph.nodes[number.owner]->attrs[number.attr];
  const bool is_number =
      attr.kind == LTC_ATTR_INT || attr.kind == LTC_ATTR_INTS || attr.kind == LTC_ATTR_FLOAT || attr.kind == LTC_ATTR_FLOATS;
  return is_number && number.element < attr.count;
}

}  // namespace

bool check_type(Call& call, const ltc_type* type) {
  if (!call.sized(type, LTC_SIZE_TO(ltc_type, sizes))) return false;
  call.require(is_known_dtype(type->dtype), "type.dtype", "dtype ", type->dtype);
  if (!call.require(type->sizes != nullptr, "type.sizes", "NULL")) return false;
  const auto sizes = std::span(type->sizes, type->rank);
  return call.require(std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; }), "type.sizes", Type::of(*type).text());
}

bool check_graph(Call& call, const ltc_graph* graph) {
  if (!call.sized(graph, LTC_SIZE_TO(ltc_graph, outputs)) || !call.not_null(graph->types, "types", graph->value_count) ||
      !call.not_null(graph->params, "params", graph->param_count) || !call.not_null(graph->nodes, "nodes", graph->node_count) ||
      !call.not_null(graph->outputs, "outputs", graph->output_count))
    return false;
  call.sends(graph->ext);
  for (size_t i = 0; i < graph->value_count; ++i) {
    if (!check_type(call, graph->types[i])) return false;
  }
  Values values(call, *graph);
  for (size_t i = 0; i < graph->param_count; ++i) {
    if (!check_param(call, values, graph->params[i])) return false;
  }
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (!check_node(call, values, graph->nodes[i], i)) return false;
  }
  return check_outputs(call, values, *graph) && check_aliases(call, values, *graph);
}

const ltc_symbolic_sizes* check_symbols(Call& call, const ltc_extension* chain, const ltc_graph& graph) {
  const auto* symbols = reinterpret_cast<const ltc_symbolic_sizes*>(ltc_find_extension(chain, LTC_EXTENSION_SYMBOLIC));
  if (!symbols) return nullptr;
  bool is_good =
      symbols->head.struct_size >= LTC_SIZE_TO(ltc_symbolic_sizes, numbers) && (symbols->numbers || symbols->number_count == 0);
  for (size_t i = 0; is_good && i < symbols->number_count; ++i) is_good = is_valid(symbols->numbers[i], *symbols, graph);
  return call.require(is_good, "graph.symbols") ? symbols : nullptr;
}

}  // namespace ltc::host::validation
