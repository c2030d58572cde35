#include "pjrt/stablehlo/lower.h"

#include <algorithm>
#include <set>

#include "abi/boundary.h"
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {

using abi::view;

// ---- a node's arguments

namespace {

const ltc_attr* find_attr(const ltc_node& node, std::string_view name) {
  for (size_t i = 0; i < node.attr_count; ++i) {
    if (view(node.attrs[i]->name) == name) return node.attrs[i];
  }
  return nullptr;
}

}  // namespace

const ltc_attr* Call::find(std::string_view name) const {
  const ltc_attr* attr = find_attr(node_, name);
  return attr && attr->kind != LTC_ATTR_NONE ? attr : nullptr;
}
int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const ltc_attr* attr = find(name);
  return attr ? attr->value.ints[0] : otherwise;
}
Sizes Call::integers(std::string_view name) const {
  const ltc_attr* attr = find(name);
  return attr ? Sizes(attr->value.ints, attr->value.ints + attr->count) : Sizes();
}
int64_t Call::dim() const {
  const int64_t dim = integer("dim", row.name == "aten::sort.stable" ? -1 : 0), rank = inputs[0].type.rank();
  return dim < 0 ? std::max<int64_t>(dim + rank, 0) : dim;
}
Sizes Call::dims() const {
  Sizes dims = integers(find("dims") ? "dims" : "dim");
  const int64_t rank = inputs[0].type.rank();
  if (rank == 0) return {};
  for (int64_t& dim : dims) dim += dim < 0 ? rank : 0;
  for (int64_t dim = 0, all = dims.empty() ? rank : 0; dim < all; ++dim) dims.push_back(dim);
  return dims;
}
Value Call::number(std::string_view name) {
  const ltc_attr* attr = find(name);
  if (!attr) return next_number_ < numbers_.size() ? numbers_[next_number_++] : module.number(LTC_I64, 0);
  if (attr->kind == LTC_ATTR_FLOAT) return module.real(attr->value.floats[0]);
  return module.number(attr->kind == LTC_ATTR_BOOL ? LTC_BOOL : LTC_I64, attr->value.ints[0]);
}

// ---- claims

namespace {

const Row* find_row(std::string_view name) {
  for (const auto table : {elementwise_ops(), movement_ops(), reduction_ops(), index_ops(), product_ops(), creation_ops()}) {
    const auto row = std::ranges::find(table, name, &Row::name);
    if (row != table.end()) return &*row;
  }
  return nullptr;
}

bool in_set(std::string_view set, ltc_dtype dtype) {
  const auto has = [&](char letter) { return set.find(letter) != set.npos; };
  switch (dtype) {
    case LTC_F32:
    case LTC_F64: return has('f');
    case LTC_U8:
    case LTC_I8:
    case LTC_I16: return has('i');
    case LTC_I32:
    case LTC_I64: return has('i') || has('w');
    case LTC_BOOL: return has('b');
    case LTC_F16:
    case LTC_BF16: return has('h');
    case LTC_C64: return has('c');
    default: return false;
  }
}

// Matches operands and results with the letters of a row.
class Matcher {
 public:
  Matcher(const ltc_graph& graph, const std::vector<bool>& is_scalar, const Row& row)
      : graph_(graph), is_scalar_(is_scalar), row_(row) {}

  bool operands(std::string_view letters, const ltc_node& node) {
    size_t next = 0;
    for (const char letter : letters) {
      const auto given = [&] { return next < node.input_count; };
      if (letter == '+') {
        while (given()) {
          if (!fits('T', node.inputs[next++])) return false;
        }
      } else if (letter == 's') {
        next += given() && node.inputs[next] != LTC_NONE && is_scalar_[node.inputs[next]];
      } else if (letter == '-') {
        if (given() && node.inputs[next++] != LTC_NONE) return false;
      } else if (!given() || !fits(letter, node.inputs[next++])) {
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
    if (value == LTC_NONE || (is_scalar_[value] && letter != 'N')) return false;
    const ltc_dtype dtype = graph_.types[value]->dtype;
    if (letter == 'b') return dtype == LTC_BOOL;
    if (letter == 'i') return dtype == LTC_I64;
    if (letter == 'T' && shared_ == 0) shared_ = dtype;
    return in_set(row_.dtypes, dtype) && (letter != 'T' || dtype == shared_);
  }

  const ltc_graph& graph_;
  const std::vector<bool>& is_scalar_;
  const Row& row_;
  ltc_dtype shared_ = 0;
};

bool has_kind(const ltc_attr& attr, char letter) {
  switch (letter) {
    case 'i': return attr.kind == LTC_ATTR_INT;
    case 'I': return attr.kind == LTC_ATTR_INTS;
    case 'b': return attr.kind == LTC_ATTR_BOOL;
    case 'd': return attr.kind == LTC_ATTR_DTYPE;
    case 'n': return attr.kind == LTC_ATTR_NONE;
    case 's': return attr.kind == LTC_ATTR_INT || attr.kind == LTC_ATTR_FLOAT || attr.kind == LTC_ATTR_BOOL;
    case '1':
      return (attr.kind == LTC_ATTR_INT && attr.value.ints[0] == 1) || (attr.kind == LTC_ATTR_FLOAT && attr.value.floats[0] == 1);
    default: return false;
  }
}

// Whether the row lists each attribute of the node with its kind, and the node has those that it must.
bool fits_attrs(std::string_view row, const ltc_node& node) {
  size_t known = 0;
  while (!row.empty()) {
    const std::string_view entry = row.substr(0, row.find(' '));
    row.remove_prefix(std::min(row.size(), entry.size() + 1));
    const size_t colon = entry.find(':');
    const std::string_view kinds = entry.substr(colon + 1);
    const ltc_attr* attr = find_attr(node, entry.substr(0, colon));
    if (!attr && !kinds.ends_with('?')) return false;
    if (attr && std::ranges::none_of(kinds, [&](char letter) { return has_kind(*attr, letter); })) return false;
    known += attr != nullptr;
  }
  return known == node.attr_count;
}

std::vector<bool> find_scalars(const ltc_graph& graph) {
  std::vector<bool> is_scalar(graph.value_count, false);
  for (size_t i = 0; i < graph.param_count; ++i) is_scalar[graph.params[i]->value] = graph.params[i]->flags & LTC_PARAM_SCALAR;
  return is_scalar;
}

bool can_lower(const ltc_graph& graph, const std::vector<bool>& is_scalar, const ltc_node& node) {
  const Row* row = find_row(view(node.name));
  if (!row) return false;
  const size_t colon = row->operands.find(':');
  Matcher matcher(graph, is_scalar, *row);
  if (!matcher.operands(row->operands.substr(0, colon), node) || !matcher.results(row->operands.substr(colon + 1), node))
    return false;
  if (!fits_attrs(row->attrs, node)) return false;
  const auto rank = [&](uint32_t value) { return graph.types[value]->rank; };
  const auto has_rank_of_result = [&](uint32_t value) { return rank(value) == rank(node.outputs[0]); };
  return row->name != "aten::cat" || std::all_of(node.inputs, node.inputs + node.input_count, has_rank_of_result);
}

// ---- lowering

Type type_of(const ltc_graph& graph, uint32_t value) {
  const ltc_type& type = *graph.types[value];
  return {type.dtype, {type.sizes, type.sizes + type.rank}};
}

class Lowering {
 public:
  explicit Lowering(const ltc_graph& graph) : graph_(graph), is_scalar_(find_scalars(graph)), values_(graph.value_count) {}

  Lowered run() {
    const std::string params = read_params();
    for (size_t i = 0; i < graph_.node_count; ++i) lower_node(i);
    Values results;
    for (size_t i = 0; i < graph_.output_count; ++i) results.push_back(values_[graph_.outputs[i]]);
    for (const Value& value : results) signature_.outputs.push_back(value.type);
    if (!signature_.checks.empty()) results.push_back(first_bad_index());
    std::string names, types;
    for (const Value& value : results) {
      names += (names.empty() ? "" : ", ") + value.name;
      types += (types.empty() ? "" : ", ") + value.type.text();
    }
    return {"module @ltc {\n  func.func public @main(" + params + ") -> (" + types + ") {\n" + module_.text() +
                "    \"func.return\"(" + names + ") : (" + types + ") -> ()\n  }\n}\n",
            std::move(signature_)};
  }

 private:
  // The text of the function's params; scalars share one.
  std::string read_params() {
    std::string text;
    std::vector<uint32_t> scalars;
    for (size_t i = 0; i < graph_.param_count; ++i) {
      const ltc_param& param = *graph_.params[i];
      if (param.flags & ~uint32_t{LTC_PARAM_SCALAR | LTC_PARAM_CONSTANT})
        throw abi::Failure(LTC_UNSUPPORTED, "a param has unknown flags");
      if (is_scalar_[param.value]) {
        scalars.push_back(param.value);
        continue;
      }
      const Type type = type_of(graph_, param.value);
      const bool can_become = param.alias_output != LTC_NONE && type_of(graph_, graph_.outputs[param.alias_output]) == type;
      values_[param.value] = {"%arg" + std::to_string(signature_.inputs.size()), type};
      text += (text.empty() ? "" : ", ") + values_[param.value].name + ": " + type.text();
      if (can_become) text += " {tf.aliasing_output = " + std::to_string(param.alias_output) + " : i32}";
      signature_.inputs.push_back(type);
      signature_.becomes.push_back(can_become ? param.alias_output : LTC_NONE);
    }
    signature_.scalar_count = static_cast<uint32_t>(scalars.size());
    if (scalars.empty()) return text;
    const Value all{"%scalars", {LTC_I64, {static_cast<int64_t>(scalars.size())}}};
    for (size_t i = 0; i < scalars.size(); ++i)
      values_[scalars[i]] = scalar(all, static_cast<int64_t>(i), type_of(graph_, scalars[i]).dtype);
    return text + (text.empty() ? "" : ", ") + all.name + ": " + all.type.text();
  }

  Value scalar(const Value& all, int64_t i, ltc_dtype dtype) {
    const Value bits = module_.reshape(module_.slice(all, {i}, {i + 1}, {1}), {});
    return dtype == LTC_BOOL ? cast(module_, bits, LTC_BOOL) : dtype == LTC_F64 ? module_.bitcast(bits, LTC_F64) : bits;
  }

  void lower_node(size_t i) {
    const ltc_node& node = *graph_.nodes[i];
    if (!can_lower(graph_, is_scalar_, node)) {
      throw abi::Failure(LTC_UNSUPPORTED, "not in the table of ops in this form: " + std::string(view(node.name)),
                         static_cast<uint32_t>(i));
    }
    module_.set_node(i);
    const Row& row = *find_row(view(node.name));
    const bool takes_numbers = row.operands.find('s') != row.operands.npos;
    Values inputs, numbers;
    for (size_t k = 0; k < node.input_count; ++k) {
      if (node.inputs[k] == LTC_NONE) continue;
      (takes_numbers && is_scalar_[node.inputs[k]] ? numbers : inputs).push_back(values_[node.inputs[k]]);
    }
    std::vector<Type> outputs;
    bool is_empty = true;
    for (size_t k = 0; k < node.output_count; ++k) {
      outputs.push_back(node.outputs[k] == LTC_NONE ? Type{} : type_of(graph_, node.outputs[k]));
      is_empty &= node.outputs[k] == LTC_NONE || outputs.back().count() == 0;
    }
    Call call(module_, row, node, inputs, numbers, outputs);
    if (row.operands.find("i") == 1) add_check(call, static_cast<uint32_t>(i));
    const Values results = is_empty ? Values() : row.emit(call);
    for (size_t k = 0; k < node.output_count; ++k) {
      if (node.outputs[k] != LTC_NONE) values_[node.outputs[k]] = is_empty ? module_.filled(outputs[k], 0) : results.at(k);
    }
  }

  // The largest and the least index tell whether all are good.
  void add_check(const Call& call, uint32_t node) {
    const Type& type = call.inputs[0].type;
    const Value& index = call.inputs[1];
    if (index.type.count() == 0) return;
    const int64_t dim = call.dim(), size = type.rank() == 0 ? 1 : type.sizes.at(static_cast<size_t>(dim));
    Sizes dims;
    for (int64_t i = 0; i < index.type.rank(); ++i) dims.push_back(i);
    const Value most = module_.reduce(index, dims, "maximum", module_.least(LTC_I64));
    const Value least = module_.reduce(index, dims, "minimum", module_.greatest(LTC_I64)), zero = module_.number(LTC_I64, 0);
    const Value below = module_.compare(least, zero, "LT"), above = module_.compare(most, module_.number(LTC_I64, size), "GE");
    signature_.checks.push_back({node, dim, size});
    verdicts_.push_back({module_.op("or", {below, above}), module_.select(below, least, most)});
  }

  Value first_bad_index() {
    Value which = module_.number(LTC_I64, -1), index = module_.number(LTC_I64, 0);
    for (size_t i = verdicts_.size(); i-- > 0;) {
      which = module_.select(verdicts_[i].is_bad, module_.number(LTC_I64, static_cast<int64_t>(i)), which);
      index = module_.select(verdicts_[i].is_bad, verdicts_[i].index, index);
    }
    return module_.op("concatenate", {module_.reshape(which, {1}), module_.reshape(index, {1})}, {LTC_I64, {2}},
                      "dimension = 0 : i64");
  }

  struct Verdict {
    Value is_bad, index;
  };
  const ltc_graph& graph_;
  const std::vector<bool> is_scalar_;
  std::vector<Value> values_;  // by value id
  Module module_;
  Signature signature_;
  std::vector<Verdict> verdicts_;
};

}  // namespace

std::vector<bool> find_claims(const ltc_graph& graph) {
  const std::vector<bool> is_scalar = find_scalars(graph);
  std::vector<bool> claims(graph.node_count);
  for (size_t i = 0; i < graph.node_count; ++i) claims[i] = can_lower(graph, is_scalar, *graph.nodes[i]);
  return claims;
}

Lowered lower(const ltc_graph& graph) { return Lowering(graph).run(); }

}  // namespace ltc::pjrt
