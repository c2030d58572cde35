#include "core/compile/types/arguments.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"

namespace ltc::types {
namespace {

constexpr std::string_view kPlacement[] = {"Layout", "Device", "MemoryFormat", "Generator"};

// Whether an attribute can be the argument: of its kind, and as many numbers as it asks for.
bool has_kind(const OpArg& arg, const Attr& attr) {
  std::string_view type = arg.type;
  const bool optional = type.ends_with('?');
  if (optional) type.remove_suffix(1);
  if (attr.kind == AttrKind::kNone) return optional || arg.default_value == "None";
  if (std::ranges::count(kPlacement, type)) return true;
  if (arg.kind == OpArgKind::kNumber)
    return attr.kind == AttrKind::kInt || attr.kind == AttrKind::kFloat || attr.kind == AttrKind::kBool;
  if (const size_t bracket = type.find('['); bracket != type.npos) {
    const std::string_view element = type.substr(0, bracket);
    size_t wanted = 0;  // any number
    std::from_chars(type.data() + bracket + 1, type.data() + type.size(), wanted);
    if (element == "float") return attr.kind == AttrKind::kFloats || (attr.kind == AttrKind::kInts && attr.ints.empty());
    if (attr.kind != AttrKind::kInts) return false;
    // One number may stand for both of int[2], and none for what the op takes then.
    const size_t count = attr.ints.size();
    return wanted <= 1 || count == wanted || (element == "int" && count <= 1);
  }
  const AttrKind kind = type == "bool"         ? AttrKind::kBool
                        : type == "str"        ? AttrKind::kString
                        : type == "ScalarType" ? AttrKind::kDType
                                               : AttrKind::kInt;
  return attr.kind == kind;
}

// "0", "-1", "True", "[]" and the like.
Dims read_default(std::string_view text) {
  if (text.empty() || text == "[]" || text == "None") return {};
  if (text == "True") return {1};
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return {value};
}

// None where a list is among the results, or arguments are written: those are results too.
std::optional<size_t> result_count(const OpRow& row) {
  const std::string_view returns = row.schema.substr(row.schema.rfind("->"));
  if (returns.find('[') != returns.npos || row.schema.find('!') != row.schema.npos) return std::nullopt;
  return 1 + std::ranges::count(returns, ',');
}

}  // namespace

Arguments::Arguments(const Graph& graph, const Node& node, const OpRow& row) : graph_(graph), node_(node), row_(row) {
  const AttrList& attrs = attrs_of(node.attrs);
  size_t next = 0, named = 0;
  for (const OpArg& arg : op_args(row)) {
    named += find_attr(attrs, arg.name) != nullptr;
    if (arg.kind == OpArgKind::kTensorList) ++named;
    if (violation_.empty()) violation_ = take(arg, next);
  }
  if (!violation_.empty()) return;
  if (named != attrs.size()) violation_ = "has an attribute that its schema lacks";
  if (next != node.inputs.size()) violation_ = cat("has ", node.inputs.size(), " operands, its schema ", next);
  if (const auto results = result_count(row); results && *results != node.outputs.size())
    violation_ = cat("has ", node.outputs.size(), " results, its schema ", *results);
}

// The operands or the attribute of one argument; returns a violation.
std::string Arguments::take(const OpArg& arg, size_t& next) {
  const Attr* attr = constant(arg.name);
  if (attr && !has_kind(arg, *attr)) return cat("has an attribute ", arg.name, " that is no ", arg.type);
  const bool is_number = arg.kind == OpArgKind::kNumber;
  size_t count = 0;
  if (arg.kind == OpArgKind::kTensorList) {
    const Attr* length = constant(std::string(arg.name) + ".count");
    if (!length || length->kind != AttrKind::kInt || length->ints[0] < 0)
      return cat("does not say how many ", arg.name, " it has");
    count = static_cast<size_t>(length->ints[0]);
  } else if (arg.kind == OpArgKind::kTensor || (is_number && !attr)) {
    count = 1;
  } else if (!attr && arg.default_value.empty()) {
    return cat("lacks ", arg.name);
  }
  if (count > node_.inputs.size() - std::min(next, node_.inputs.size()))
    return cat("has ", node_.inputs.size(), " operands, its schema ", next + count);
  const std::span<const ValueId> values = std::span(node_.inputs).subspan(next, count);
  next += count;
  const bool optional = arg.type.find('?') != arg.type.npos || arg.default_value == "None";
  if (!optional && std::ranges::count(values, kNone)) return cat("lacks ", arg.name);
  if (is_number && count > 0 && values[0] != kNone && !graph_.type(values[0]).sizes.empty())
    return cat("has a ", arg.name, " that is no number");
  if (count > 0 || arg.kind == OpArgKind::kTensorList) operands_.push_back({arg.name, is_number, values});
  return "";
}

std::span<const ValueId> Arguments::tensors(std::string_view name) const {
  const auto found = std::ranges::find(operands_, name, &Operands::name);
  return found == operands_.end() ? std::span<const ValueId>() : found->values;
}

const Type* Arguments::tensor(std::string_view name) const {
  const auto values = tensors(name);
  return values.empty() || values[0] == kNone ? nullptr : &graph_.type(values[0]);
}

const Type* Arguments::first() const {
  for (const Operands& argument : operands_) {
    if (argument.is_number) continue;
    for (const ValueId value : argument.values) {
      if (value != kNone) return &graph_.type(value);
    }
  }
  return nullptr;
}

bool Arguments::given(std::string_view name) const {
  const Attr* attr = constant(name);
  if (attr) return attr->kind != AttrKind::kNone;
  return tensor(name) || !ints(name).empty();
}

Dims Arguments::ints(std::string_view name) const {
  if (const Attr* attr = constant(name)) return attr->ints;
  for (const OpArg& arg : op_args(row_)) {
    if (arg.name == name) return read_default(arg.default_value);
  }
  return {};
}

int64_t Arguments::integer(std::string_view name) const {
  const Dims values = ints(name);
  return values.empty() ? 0 : values[0];
}

}  // namespace ltc::types
