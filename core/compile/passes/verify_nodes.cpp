#include "core/compile/passes/verify_nodes.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ir/text.h"
#include "core/ops/op_schema.h"

namespace ltc {
namespace {

using Dims = std::vector<int64_t>;

// One node, its operands and attributes by place and name.
struct Call {
  const Graph& graph;
  const Node& node;

  const Type& operand(size_t i) const { return graph.type(node.inputs[i]); }
  const Type& result() const { return graph.type(node.outputs[0]); }
  const Attr* attr(const char* name) const {
    const Attr* found = find_attr(attrs_of(node.attrs), name);
    return found && found->kind != AttrKind::kNone ? found : nullptr;
  }
  int64_t integer(const char* name, int64_t otherwise) const { return attr(name) ? attr(name)->ints[0] : otherwise; }
  const Dims& dims(const char* name) const { return attr(name)->ints; }
};

int64_t wrapped(int64_t dim, size_t rank) { return dim < 0 ? dim + static_cast<int64_t>(rank) : dim; }

// ---- one function for each op: whether dtype and sizes of the result are those that the node gives

bool is_reshape(const Call& call) {
  const Type &from = call.operand(0), &to = call.result();
  const Dims& shape = call.dims("shape");
  const auto fits = [](int64_t asked, int64_t size) { return asked == size || asked == -1; };
  return from.dtype == to.dtype && from.element_count == to.element_count && std::ranges::equal(shape, to.sizes, fits);
}

bool is_permute(const Call& call) {
  const Type &from = call.operand(0), &to = call.result();
  const Dims& dims = call.dims("dims");
  const size_t rank = from.sizes.size();
  if (from.dtype != to.dtype || dims.size() != rank || to.sizes.size() != rank) return false;
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = wrapped(dims[i], rank);
    if (dim < 0 || dim >= static_cast<int64_t>(rank) || seen[dim] || from.sizes[dim] != to.sizes[i]) return false;
    seen[dim] = true;
  }
  return true;
}

bool is_expand(const Call& call) {
  const Type &from = call.operand(0), &to = call.result();
  if (from.dtype != to.dtype || to.sizes.size() < from.sizes.size() || call.dims("size").size() != to.sizes.size()) return false;
  const size_t more = to.sizes.size() - from.sizes.size();
  for (size_t i = 0; i < to.sizes.size(); ++i) {
    const int64_t asked = call.dims("size")[i];
    if (asked != to.sizes[i] && (asked != -1 || i < more)) return false;
    if (i >= more && from.sizes[i - more] != to.sizes[i] && from.sizes[i - more] != 1) return false;
  }
  return true;
}

bool is_slice(const Call& call) {
  const Type& from = call.operand(0);
  const int64_t dim = wrapped(call.integer("dim", 0), from.sizes.size()), step = call.integer("step", 1);
  if (dim < 0 || dim >= static_cast<int64_t>(from.sizes.size()) || step < 1) return false;
  const int64_t size = from.sizes[dim];
  const auto place = [&](const char* name, int64_t otherwise) {
    const int64_t given = call.integer(name, otherwise);
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  const int64_t start = place("start", 0), end = std::max(start, place("end", size));
  Dims sizes = from.sizes;
  sizes[dim] = (end - start) / step + ((end - start) % step != 0);
  return from.dtype == call.result().dtype && sizes == call.result().sizes;
}

// Whether the geometry that the node names lies within `count` elements.
bool lies_within(const Call& call, int64_t count) {
  const Dims &sizes = call.dims("size"), &strides = call.dims("stride");
  int64_t last = call.integer("storage_offset", 0);
  if (sizes.size() != strides.size() || last < 0) return false;
  if (std::ranges::count(sizes, 0)) return true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) return false;
    last += (sizes[i] - 1) * strides[i];
  }
  return last < count;
}

bool is_strided_read(const Call& call) {
  const Type &from = call.operand(0), &to = call.result();
  return from.dtype == to.dtype && call.dims("size") == to.sizes && lies_within(call, from.element_count);
}

bool is_strided_write(const Call& call) {
  const Type &whole = call.operand(0), &piece = call.operand(1);
  return same_shape(whole, call.result()) && piece.dtype == whole.dtype && call.dims("size") == piece.sizes &&
         lies_within(call, whole.element_count);
}

bool is_conversion(const Call& call) {
  const Attr* dtype = call.attr("dtype");
  const DType to = dtype ? static_cast<DType>(dtype->ints[0]) : call.operand(0).dtype;
  return call.result().dtype == to && call.result().sizes == call.operand(0).sizes;
}

struct Rule {
  std::vector<const char*> attrs;  // that it must have
  bool (*holds)(const Call& call);
};

const Rule* find_rule(OpId op) {
  static const auto* rules = new std::unordered_map<OpId, Rule>{
      {intern_op("aten::reshape"), {{"shape"}, is_reshape}},
      {intern_op("aten::permute"), {{"dims"}, is_permute}},
      {intern_op("aten::expand"), {{"size"}, is_expand}},
      {intern_op("aten::slice.Tensor"), {{}, is_slice}},
      {intern_op("aten::as_strided"), {{"size", "stride"}, is_strided_read}},
      {intern_op("aten::as_strided_scatter"), {{"size", "stride"}, is_strided_write}},
      {intern_op("ltc::as_strided"), {{"size", "stride"}, is_strided_read}},
      {intern_op("ltc::as_strided_scatter"), {{"size", "stride"}, is_strided_write}},
      {intern_op("aten::_to_copy"), {{}, is_conversion}},
  };
  const auto found = rules->find(op);
  return found == rules->end() ? nullptr : &found->second;
}

// ---- the schema

// How many operands the schema asks for; none if it has no argument of an attribute's name.
std::optional<size_t> operand_count(const OpRow& row, const AttrList& attrs) {
  size_t count = 0, named = 0;
  for (const OpArg& arg : op_args(row)) {
    const Attr* attr = find_attr(attrs, arg.name);
    named += attr != nullptr;
    if (arg.kind == OpArgKind::kTensorList) {
      const Attr* length = find_attr(attrs, std::string(arg.name) + ".count");
      named += length != nullptr;
      count += length ? static_cast<size_t>(length->ints[0]) : 0;
    } else if (arg.kind == OpArgKind::kTensor || (arg.kind == OpArgKind::kNumber && !attr)) {
      ++count;
    }
  }
  return named == attrs.size() ? std::optional(count) : std::nullopt;
}

// None where a list is among the results, or arguments are written: those are results too.
std::optional<size_t> result_count(const OpRow& row) {
  const std::string_view returns = row.schema.substr(row.schema.rfind("->"));
  if (returns.find('[') != returns.npos || row.schema.find('!') != row.schema.npos) return std::nullopt;
  return 1 + std::ranges::count(returns, ',');
}

class Checker {
 public:
  Checker(const Graph& graph, const char* after) : graph_(graph), after_(after) {}

  void run() const {
    for (const Node& node : graph_.nodes) {
      if (const OpRow* row = find_op_row(op_name(node.op))) check_schema(node, *row);
      if (const Rule* rule = find_rule(node.op)) check_types(node, *rule);
    }
  }

 private:
  template <typename... Parts>
  void check(bool condition, const Node& node, const Parts&... parts) const {
    if (condition) return;
    const Graph alone{graph_.types, {}, {node}, {}};
    fail(Code::kInternal, "[verify] after ", after_, ": ", op_name(node.op), " ", parts..., at_location(node.location), ": ",
         print(alone));
  }

  void check_schema(const Node& node, const OpRow& row) const {
    const std::optional<size_t> operands = operand_count(row, attrs_of(node.attrs)), results = result_count(row);
    check(operands.has_value(), node, "has an attribute that its schema lacks");
    check(*operands == node.inputs.size(), node, "has ", node.inputs.size(), " operands, its schema ", *operands);
    check(!results || *results == node.outputs.size(), node, "has ", node.outputs.size(), " results, its schema ",
          results.value_or(0));
  }

  void check_types(const Node& node, const Rule& rule) const {
    const Call call{graph_, node};
    const bool complete = std::ranges::all_of(rule.attrs, [&](const char* name) { return call.attr(name) != nullptr; }) &&
                          !node.inputs.empty() && std::ranges::find(node.inputs, kNone) == node.inputs.end();
    check(complete, node, "lacks an operand or an attribute");
    check(rule.holds(call), node, "does not give a result of that type");
  }

  const Graph& graph_;
  const char* after_;
};

}  // namespace

void verify_nodes(const Graph& graph, const char* after) { Checker(graph, after).run(); }

}  // namespace ltc
