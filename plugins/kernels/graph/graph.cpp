#include "kernels/graph/graph.h"

#include <algorithm>

namespace ltc::kernels {
const Attr* Node::find(std::string_view name) const {
  const auto found = std::ranges::find(attrs, name, &Attr::name);
  return found == attrs.end() || found->kind == LTC_ATTR_NONE ? nullptr : &*found;
}

int64_t Node::integer(std::string_view name, int64_t otherwise) const {
  const Attr* attr = find(name);
  return attr && !attr->ints.empty() ? attr->ints[0] : otherwise;
}

const std::vector<int64_t>& Node::integers(std::string_view name) const {
  static const std::vector<int64_t> none;
  const Attr* attr = find(name);
  return attr ? attr->ints : none;
}

ValueId Graph::add_value(ltc_dtype dtype, Sizes sizes) {
  const int64_t count = count_of(sizes);
  values.push_back({dtype, std::move(sizes), count});
  return static_cast<ValueId>(values.size() - 1);
}

void Graph::append(Node node) {
  for (const ValueId value : node.out) {
    if (value != kNone) values[value].producer = static_cast<NodeId>(nodes.size());
  }
  nodes.push_back(std::move(node));
}

ValueId Graph::add_node(Kind kind, std::vector<ValueId> in, std::vector<Attr> attrs, ltc_dtype dtype, Sizes sizes,
                        uint32_t source) {
  const ValueId result = add_value(dtype, std::move(sizes));
  const auto row = std::ranges::find(op_table(), kind, &OpRow::kind);
  append({row == op_table().end() ? nullptr : &*row, kind, std::move(in), {result}, std::move(attrs), source});
  return result;
}

bool Graph::is_scalar_param(ValueId value) const {
  return std::ranges::any_of(params, [&](const Param& param) { return param.value == value && param.scalar; });
}

std::string op_name(const Node& node) {
  if (node.op) return std::string(node.op->name);
  return node.kind == Kind::kWindows ? "ltc::windows" : "ltc::pack";
}

std::string type_text(const Value& value) {
  static constexpr std::string_view kNames[] = {"?", "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64"};
  std::string text(value.dtype < std::size(kNames) ? kNames[value.dtype] : "?");
  text += '[';
  for (size_t dim = 0; dim < value.sizes.size(); ++dim) text += (dim ? "," : "") + std::to_string(value.sizes[dim]);
  return text + ']';
}

}  // namespace ltc::kernels
