#include "pjrt/stablehlo/lower.h"

#include <algorithm>
#include <bit>

#include "ltc/entry.h"
#include "ltc/graph.hpp"
#include "ltc/opset.h"
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {

// ---- a node's arguments

Sizes Call::integers(std::string_view name) const {
  if (const auto one = node.find<int64_t>(name)) return {*one};
  const auto list = node.get<std::span<const int64_t>>(name, {});
  return {list.begin(), list.end()};
}
int64_t Call::dim(int64_t otherwise) const {
  const int64_t dim = node.get<int64_t>("dim", otherwise);
  return dim < 0 ? std::max<int64_t>(dim + in(0).type.rank(), 0) : dim;
}
Sizes Call::dims(std::string_view name) const {
  const int64_t rank = in(0).type.rank();
  Sizes dims = integers(name);
  if (rank == 0) return {};
  for (int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  for (int64_t dim = 0, all = dims.empty() ? rank : 0; dim < all; ++dim) dims.push_back(dim);
  return dims;
}
Value Call::number(std::string_view name) {
  if (const auto value = node.find<int64_t>(name)) return m.number(LTC_I64, *value);
  if (const auto value = node.find<bool>(name)) return m.number(LTC_BOOL, *value);
  if (const auto value = node.find<double>(name)) return m.bitcast(m.number(LTC_I64, std::bit_cast<int64_t>(*value)), LTC_F64);
  return next_number < numbers.size() ? numbers[next_number++] : m.number(LTC_I64, 0);
}

namespace {

// ---- claims

// Null where the node cannot be lowered.
const Row* find_row(const plugin::Node& node) {
  if (!node.graph.knows_flags() || !ltc_node_matches(&node.abi, ltc_op_operands(node.abi.op))) return nullptr;
  for (const auto table : {elementwise_ops(), movement_ops(), reduction_ops(), index_ops(), product_ops(), creation_ops()}) {
    for (const Row& row : table) {
      const auto computes = [&](ltc_dtype dtype) { return is_kind(dtype, row.dtypes); };
      if (row.name == node.name() && plugin::matches_types(node, row.types, computes) && plugin::has_usual_form(node))
        return &row;
    }
  }
  return nullptr;
}

// ---- lowering

// Elements of a value. XLA of 2026 ends the process while it compiles larger ones, which no device holds.
constexpr int64_t kLargest = int64_t{1} << 40;

Type type_of(const ltc_type& type) { return {type.dtype, {type.sizes, type.sizes + type.rank}}; }

class Lowering {
 public:
  explicit Lowering(const ltc_graph& graph) : graph_(graph), values_(graph.value_count) {}

  Lowered run() {
    const std::string params = read_params();
    for (size_t i = 0; i < graph_.size(); ++i) lower_node(graph_.node(i));
    Values results;
    for (const uint32_t output : graph_.outputs()) results.push_back(values_[output]);
    for (const Value& value : results) signature_.outputs.push_back(value.type);
    std::vector<bool> may_fail(graph_.size());
    for (const IndexCheck& check : signature_.checks) may_fail[check.node] = true;
    signature_.good_outputs = plugin::unaffected_outputs(graph_, may_fail);
    if (!signature_.checks.empty()) results.push_back(verdict_);
    return {"module @ltc {\n  func.func public @main(" + params + ") -> (" + types(results) + ") {\n" + m_.text() +
                "    \"func.return\"(" + names(results) + ") : (" + types(results) + ") -> ()\n  }\n}\n",
            std::move(signature_)};
  }

 private:
  // The text of the function's params. Scalars share one.
  std::string read_params() {
    std::string text;
    std::vector<uint32_t> scalars;
    if (!graph_.knows_flags()) throw plugin::Failure(LTC_UNSUPPORTED, "a param has unknown flags");
    for (const ltc_param* param : graph_.params()) {
      if (graph_.is_scalar(param->value)) {
        scalars.push_back(param->value);
        continue;
      }
      const Type type = type_of(graph_.type(param->value));
      const uint32_t alias = param->alias_output;
      const bool can_become = alias != LTC_NONE && type_of(graph_.type(graph_.outputs()[alias])) == type;
      values_[param->value] = {"%arg" + std::to_string(signature_.inputs.size()), type};
      text += (text.empty() ? "" : ", ") + values_[param->value].name + ": " + type.text();
      if (can_become) text += " {tf.aliasing_output = " + std::to_string(alias) + " : i32}";
      signature_.inputs.push_back(type);
      signature_.becomes.push_back(can_become ? alias : LTC_NONE);
    }
    signature_.scalar_count = static_cast<uint32_t>(scalars.size());
    if (scalars.empty()) return text;
    const Value all{"%scalars", {LTC_I64, {static_cast<int64_t>(scalars.size())}}};
    for (int64_t i = 0; i < all.type.sizes[0]; ++i) {
      const Value bits = m_.reshape(m_.slice(all, {i}, {i + 1}, {1}), {});
      const uint32_t scalar = scalars[static_cast<size_t>(i)];
      const ltc_dtype dtype = graph_.type(scalar).dtype;
      values_[scalar] = dtype == LTC_F64 ? m_.bitcast(bits, LTC_F64) : dtype == LTC_BOOL ? cast(m_, bits, LTC_BOOL) : bits;
    }
    return text + (text.empty() ? "" : ", ") + all.name + ": " + all.type.text();
  }

  void lower_node(const plugin::Node& node) {
    const Row* row = find_row(node);
    if (!row) throw node.failure("is not in the table of ops in this form");
    m_.set_node(node.index);
    Call call{m_, node, row->formula, {}, {}, {}};
    const bool takes_numbers = row->types.find('s') != row->types.npos;
    for (const uint32_t input : node.inputs()) {
      if (input == LTC_NONE) continue;
      (takes_numbers && graph_.is_scalar(input) ? call.numbers : call.inputs).push_back(values_[input]);
    }
    bool is_empty = true;
    for (const uint32_t output : node.outputs()) {
      const Type& type = call.outputs.emplace_back(output == LTC_NONE ? Type{} : type_of(graph_.type(output)));
      if (type.count() > kLargest) throw node.failure("makes too large a value, " + type.text(), LTC_RESOURCE_EXHAUSTED);
      is_empty &= output == LTC_NONE || type.count() == 0;
    }
    if (row->types.find('i') == 1) check_index(call);
    const Values results = is_empty ? Values() : row->emit ? row->emit(call) : of_elements(call);
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      const uint32_t output = node.outputs()[k];
      if (output != LTC_NONE) values_[output] = is_empty ? m_.filled(call.outputs[k], 0) : results.at(k);
    }
  }

  Values of_elements(const Call& call) {
    Values operands;
    for (const Value& value : call.inputs) operands.push_back(m_.broadcast(value, call.type().sizes));
    return {m_.eval(call.formula, operands)};
  }

  // The largest and the least index tell whether all are good. The verdict is that of the first check that fails.
  void check_index(const Call& call) {
    const Type& type = call.in(0).type;
    const Value& index = call.in(1);
    if (index.type.count() == 0) return;
    const int64_t dim = call.dim(), size = type.rank() == 0 ? 1 : type.sizes.at(static_cast<size_t>(dim));
    Sizes all;
    for (int64_t i = 0; i < index.type.rank(); ++i) all.push_back(i);
    const Value most = m_.reduce(index, all, "maximum(x,y)", m_.extreme(LTC_I64, true));
    const Value least = m_.reduce(index, all, "minimum(x,y)", m_.extreme(LTC_I64, false));
    const Value bad = m_.reshape(m_.eval("select(LT(x,0),x,y)", {least, most}), {1}),
                which = m_.number(LTC_I64, static_cast<int64_t>(signature_.checks.size()));
    const Value failed = m_.op("concatenate", {m_.reshape(which, {1}), bad}, {LTC_I64, {2}}, axis("dimension", 0));
    const Value is_bad = m_.broadcast(m_.eval("or(LT(x,0),GE(x,y))", {bad, m_.filled(bad.type, size)}), {2});
    const Value own = m_.eval("select(x,y,-1)", {is_bad, failed});
    const auto has_failed = [&] { return m_.broadcast(m_.eval("GE(x,0)", {m_.slice(verdict_, {0}, {1}, {1})}), {2}); };
    verdict_ = signature_.checks.empty() ? own : m_.eval("select(x,y,z)", {has_failed(), verdict_, own});
    signature_.checks.push_back({call.node.index, dim, size});
  }

  const plugin::Graph graph_;
  std::vector<Value> values_;  // by value id
  Module m_;
  Signature signature_;
  Value verdict_;
};

}  // namespace

void claim(const ltc_graph& graph, uint32_t* cluster) {
  const plugin::Graph reader(graph);
  for (size_t i = 0; i < reader.size(); ++i) cluster[i] = find_row(reader.node(i)) ? 1 : 0;
}

Lowered lower(const ltc_graph& graph) { return Lowering(graph).run(); }

}  // namespace ltc::pjrt
