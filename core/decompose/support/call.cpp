#include "core/decompose/support/call.h"

#include "core/base/error.h"
#include "core/base/number.h"

namespace ltc::decompose {
namespace {

double parse_number(std::string_view text) {
  if (text == "True") return 1;
  if (text == "False") return 0;
  double value = 0;
  ensure(read_number(text, value), "a default of ", text, " is no number");
  return value;
}

}  // namespace

Call::Call(Builder& builder, const Node& node, const OpRow& row, std::span<const ValueId> recorded)
    : builder_(builder), node_(node), row_(row), recorded_(recorded) {
  const AttrList& attrs = attrs_of(node.attrs);
  size_t next = 0;
  for (const OpArg& spec : op_args(row)) {
    Argument argument{&spec, next, 0, find_attr(attrs, spec.name)};
    if (spec.kind == OpArgKind::kTensorList) {
      const Attr* count = find_attr(attrs, std::string(spec.name) + ".count");
      argument.count = count ? static_cast<size_t>(count->ints[0]) : 0;
    } else if (spec.kind == OpArgKind::kTensor || (spec.kind == OpArgKind::kNumber && !argument.attr)) {
      argument.count = 1;
    }
    next += argument.count;
    arguments_.push_back(argument);
  }
  ensure(next == node.inputs.size(), row.name, ": ", node.inputs.size(), " operands where its schema takes ", next);
}

const Call::Argument& Call::find(std::string_view name) const {
  for (const Argument& argument : arguments_) {
    if (argument.spec->name == name) return argument;
  }
  fail(Code::kInternal, row_.name, " has no argument '", name, "'");
}

const Type& Call::result(size_t index) const {
  ensure(wants(index), row_.name, ": its rule asks for the type of result ", index, ", which nobody wants");
  return builder_.graph().type(node_.outputs[index]);
}

const Type& Call::any_result() const {
  size_t index = 0;
  while (index < node_.outputs.size() && !wants(index)) ++index;
  return result(index);
}

Val Call::operand(ValueId value) const {
  if (value == kNone) return {};
  for (const Param& param : builder_.graph().params) {
    if (param.value == value) return {&builder_, value, param.scalar};
  }
  return builder_.value(value);
}

Val Call::tensor(std::string_view name) const { return operand(node_.inputs[find(name).first]); }

Val Call::first() const { return operand(node_.inputs[0]); }

std::vector<Val> Call::tensors(std::string_view name) const {
  const Argument& argument = find(name);
  std::vector<Val> result;
  for (size_t i = 0; i < argument.count; ++i) result.push_back(operand(node_.inputs[argument.first + i]));
  return result;
}

Val Call::math(std::string_view name) const {
  const Val x = tensor(name);
  return x ? cast(x, x.weak ? x.dtype() : math_dtype(x.dtype())) : x;
}

Val Call::number(std::string_view name) const {
  const Argument& argument = find(name);
  if (argument.count) return operand(node_.inputs[argument.first]);
  if (!given(name)) return {};
  const bool is_float =
      argument.attr ? argument.attr->kind == AttrKind::kFloat : argument.spec->default_value.find('.') != std::string_view::npos;
  const double value = *constant(name);
  return is_float ? decompose::number(builder_, value) : decompose::number(builder_, static_cast<int64_t>(value));
}

bool Call::is_contiguous(std::string_view name) const { return builder_.graph().type(recorded_[find(name).first]).contiguous; }

std::optional<double> Call::constant(std::string_view name) const {
  const Argument& argument = find(name);
  if (argument.count || !given(name)) return std::nullopt;
  if (!argument.attr) return parse_number(argument.spec->default_value);
  return argument.attr->kind == AttrKind::kFloat ? argument.attr->floats[0] : static_cast<double>(argument.attr->ints[0]);
}

bool Call::given(std::string_view name) const {
  const Argument& argument = find(name);
  if (argument.count) return node_.inputs[argument.first] != kNone;
  if (argument.attr) return argument.attr->kind != AttrKind::kNone;
  return !argument.spec->default_value.empty() && argument.spec->default_value != "None";
}

int64_t Call::integer(std::string_view name) const {
  const Argument& argument = find(name);
  return argument.attr ? argument.attr->ints[0] : static_cast<int64_t>(parse_number(argument.spec->default_value));
}

Ints Call::ints(std::string_view name) const {
  const Argument& argument = find(name);
  if (argument.attr) return argument.attr->kind == AttrKind::kNone ? Ints() : argument.attr->ints;
  const std::string_view text = argument.spec->default_value;
  if (text.empty() || text == "None" || text == "[]") return {};
  ensure(text.front() != '[', row_.name, ": the default ", text, " of '", name, "' has elements");
  return {integer(name)};
}

std::string Call::string(std::string_view name) const {
  const Argument& argument = find(name);
  if (argument.attr) return argument.attr->strings.empty() ? "" : argument.attr->strings[0];
  std::string_view text = argument.spec->default_value;  // quoted
  return std::string(text.size() < 2 ? text : text.substr(1, text.size() - 2));
}

std::optional<DType> Call::dtype(std::string_view name) const {
  const Argument& argument = find(name);
  if (!argument.attr || argument.attr->kind != AttrKind::kDType) return std::nullopt;
  return static_cast<DType>(argument.attr->ints[0]);
}

std::vector<Val> Call::with_bits() const {
  std::vector<Val> inputs;
  for (const ValueId input : node_.inputs) {
    const Val x = operand(input);
    inputs.push_back(x && x.dtype() == DType::kC64 ? bitcast(x, DType::kI64) : x);
  }
  std::vector<TypeId> types;
  for (const ValueId output : node_.outputs) {
    const Type& type = builder_.graph().type(output);
    types.push_back(intern_contiguous(is_complex(type.dtype) ? DType::kI64 : type.dtype, type.sizes));
  }
  std::vector<Val> results = builder_.emit_several(op_name(node_.op), inputs, types, attrs_of(node_.attrs));
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_complex(builder_.graph().type(node_.outputs[i]).dtype)) results[i] = bitcast(results[i], DType::kC64);
  }
  return results;
}

Results zeros_of(const Call& call) {
  std::vector<Val> results(call.result_count());
  for (size_t i = 0; i < results.size(); ++i) {
    if (call.wants(i)) results[i] = full(call.builder(), call.result(i).dtype, call.result(i).sizes, int64_t{0});
  }
  return results;
}

Val in_shape_of(const Call& call, size_t result, Val value) {
  return call.wants(result) ? reshape(value, call.result(result).sizes) : Val();
}

}  // namespace ltc::decompose
