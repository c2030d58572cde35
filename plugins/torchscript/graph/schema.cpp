#include "torchscript/graph/schema.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/jit_type.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "ltc/entry.h"
#include "torchscript/graph/errors.h"
#include "torchscript/graph/op_traits.h"
#include "torchscript/graph/types.h"

namespace ltc::torchscript {
namespace {

using c10::TypeKind;

// Results that a dense buffer cannot hold, and metadata that only eager has.
constexpr std::string_view kForeign[] = {"sparse", "mkldnn",         "::quantize", "dequantize", "quantized",
                                         "nested", "_reshape_alias", "resize",     "set_data"};

// The host takes them apart into element-wise nodes, which run in loops with what makes the gradients.
constexpr std::string_view kTakenApart[] = {"aten::_fused_adam_", "aten::_fused_adamw_", "aten::_fused_sgd_",
                                            "aten::_fused_adagrad_"};

[[noreturn]] void fail(ltc_code code, std::string_view name, const std::string& why) {
  throw Failure(code, c10::str("[", name, "] ", why));
}

// Our own operator where there is one.
std::string_view computed_by(std::string_view name, c10::Device device) {
  const OpTraits& traits = traits_of(name);
  return !traits.own.empty() && (device.is_cpu() || traits.own_on_any_device) ? traits.own : name;
}

bool is_tensor(const c10::Type& type) { return type.kind() == TypeKind::TensorType; }

bool is_optional_tensor(const c10::Type& type) {
  return type.kind() == TypeKind::OptionalType && is_tensor(*type.castRaw<c10::OptionalType>()->getElementType());
}

bool is_tensor_list(const c10::Type& type) {
  if (type.kind() != TypeKind::ListType) return false;
  const c10::Type& element = *type.castRaw<c10::ListType>()->getElementType();
  return is_tensor(element) || is_optional_tensor(element);
}

const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == TypeKind::OptionalType ? *type.castRaw<c10::OptionalType>()->getElementType() : type;
}

// By a kernel for such devices or for all.
bool runs_on(const c10::OperatorHandle& op, c10::Device device) {
  const c10::DispatchKey key = device.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
  return op.hasComputedKernelForDispatchKey(key);
}

bool returns_only_tensors(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  if (returns_list(schema)) return true;
  return (!returns.empty() || writes(schema)) && std::all_of(returns.begin(), returns.end(), [](const c10::Argument& arg) {
           return is_tensor(*arg.type()) || is_written(arg);
         });
}

// Attention and recurrent layers are tagged random for the sake of their dropout, which may be off.
bool is_random(const c10::OperatorHandle& op, const ltc_node& node) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  const auto index = op.schema().argumentIndexWithName("dropout_p");
  if (!index) return true;
  const ltc_attr* p = ltc_find_attr(&node, "dropout_p", 9, "");
  if (p) return p->kind != LTC_ATTR_FLOAT || p->value.floats[0] != 0.0;
  const auto& fallback = op.schema().arguments()[*index].default_value();
  return !fallback || !fallback->isDouble() || fallback->toDouble() != 0.0;
}

// Indexing is tagged so for the sake of masks; with integers its result has the sizes of the indices.
bool has_dynamic_sizes(const c10::OperatorHandle& op, const ltc_graph& graph, const ltc_node& node) {
  if (!op.hasTag(at::Tag::dynamic_output_shape) && !op.hasTag(at::Tag::data_dependent_output)) return false;
  const std::string_view name = text(node.name);
  if (name != "aten::index.Tensor" && name != "aten::_unsafe_index.Tensor") return true;
  return std::any_of(node.inputs + std::min<size_t>(1, node.input_count), node.inputs + node.input_count, [&](uint32_t index) {
    if (index >= graph.value_count) return false;
    const ltc_dtype dtype = graph.types[index]->dtype;
    return dtype == LTC_BOOL || dtype == LTC_U8;
  });
}

void check_supported(const c10::OperatorHandle& op, c10::Device device, const ltc_graph& graph, const ltc_node& node) {
  const std::string_view name = text(node.name);
  for (std::string_view word : kForeign) {
    if (name.find(word) != name.npos) fail(LTC_UNSUPPORTED, name, "works on more than dense values");
  }
  if (std::ranges::find(kTakenApart, op.operator_name().name) != std::end(kTakenApart)) {
    fail(LTC_UNSUPPORTED, name, "is left to the host's rules");
  }
  if (!runs_on(op, device)) fail(LTC_UNSUPPORTED, name, c10::str("has no ", device.is_cpu() ? "CPU" : "CUDA", " implementation"));
  if (!returns_only_tensors(op.schema())) fail(LTC_UNSUPPORTED, name, "returns other things than tensors");
  if (is_random(op, node)) fail(LTC_UNSUPPORTED, name, "draws random numbers");
  if (has_dynamic_sizes(op, graph, node)) fail(LTC_UNSUPPORTED, name, "has results whose sizes depend on data");
}

// One number as the schema wants it; nullopt where the kinds do not fit.
template <typename Number>
std::optional<c10::IValue> number_as(TypeKind kind, Number value, bool is_bool) {
  switch (kind) {
    case TypeKind::IntType:
      if (std::is_floating_point_v<Number>) return std::nullopt;
      return c10::IValue(static_cast<int64_t>(value));
    case TypeKind::FloatType: return c10::IValue(static_cast<double>(value));
    case TypeKind::BoolType:
      if (std::is_floating_point_v<Number>) return std::nullopt;
      return c10::IValue(value != 0);
    case TypeKind::NumberType: return is_bool ? c10::IValue(value != 0) : c10::IValue(value);
    default: return std::nullopt;
  }
}

template <typename Number>
std::optional<c10::IValue> list_as(TypeKind kind, const Number* values, size_t count) {
  switch (kind) {
    case TypeKind::IntType:
      if (std::is_floating_point_v<Number>) return std::nullopt;
      return c10::IValue(std::vector<int64_t>(values, values + count));
    case TypeKind::FloatType: return c10::IValue(std::vector<double>(values, values + count));
    case TypeKind::BoolType: {
      c10::List<bool> list;
      for (size_t i = 0; i < count; ++i) list.push_back(values[i] != 0);
      return c10::IValue(list);
    }
    default: return std::nullopt;
  }
}

std::optional<c10::IValue> constant_of(const ltc_attr& attr, const c10::Argument& arg) {
  const c10::Type& type = without_optional(*arg.type());
  const auto* list = type.castRaw<c10::ListType>();
  const TypeKind kind = list ? list->getElementType()->kind() : type.kind();
  const size_t repeat = std::max(arg.N().value_or(1), 1);  // int[2] accepts one int for both
  switch (attr.kind) {
    case LTC_ATTR_NONE: return c10::IValue();
    case LTC_ATTR_DTYPE: return c10::IValue(static_cast<int64_t>(to_torch(static_cast<ltc_dtype>(attr.value.ints[0]))));
    case LTC_ATTR_INT:
    case LTC_ATTR_BOOL:
      if (list) return list_as(kind, std::vector<int64_t>(repeat, attr.value.ints[0]).data(), repeat);
      return number_as(kind, attr.value.ints[0], attr.kind == LTC_ATTR_BOOL);
    case LTC_ATTR_FLOAT:
      if (list) return list_as(kind, std::vector<double>(repeat, attr.value.floats[0]).data(), repeat);
      return number_as(kind, attr.value.floats[0], false);
    case LTC_ATTR_INTS: return list ? list_as(kind, attr.value.ints, attr.count) : std::nullopt;
    case LTC_ATTR_FLOATS:
      if (kind == TypeKind::NumberType && !list && attr.count == 2) {
        return c10::IValue(c10::complex<double>(attr.value.floats[0], attr.value.floats[1]));
      }
      return list ? list_as(kind, attr.value.floats, attr.count) : std::nullopt;
    case LTC_ATTR_STRING:
      if (kind == TypeKind::StringType && !list) return c10::IValue(std::string(text(attr.value.strings[0])));
      return std::nullopt;
    default: return std::nullopt;
  }
}

// Walks the schema and the node's inputs side by side.
class NodeBinder {
 public:
  NodeBinder(const Binder& binder, const ltc_graph& graph, const ltc_node& node)
      : binder_(binder), graph_(graph), node_(node), name_(text(node.name)) {}

  std::vector<Binding> bind(const c10::FunctionSchema& schema) {
    std::vector<Binding> bindings;
    for (const c10::Argument& arg : schema.arguments()) bindings.push_back(bind(arg));
    if (next_ != node_.input_count) {
      fail(LTC_INVALID_ARGUMENT, name_, c10::str("has ", node_.input_count, " inputs, its schema takes ", next_));
    }
    if (attrs_ != node_.attr_count) {
      fail(LTC_INVALID_ARGUMENT, name_, c10::str("has ", node_.attr_count, " attributes, its schema knows ", attrs_));
    }
    return bindings;
  }

 private:
  const ltc_attr* find(std::string_view name) {
    const ltc_attr* attr = ltc_find_attr(&node_, name.data(), name.size(), "");
    attrs_ += attr != nullptr;
    return attr;
  }

  Binding bind(const c10::Argument& arg) {
    const c10::Type& type = *arg.type();
    if (is_tensor(type) || is_optional_tensor(type)) return bind_tensor(arg);
    if (is_tensor_list(without_optional(type))) return bind_tensors(arg);
    if (const ltc_attr* attr = find(arg.name())) return bind_attr(*attr, arg);
    if (without_optional(type).kind() == TypeKind::DeviceObjType) return {Binding::kConstant, binder_.device(), {}};
    const TypeKind kind = without_optional(type).kind();
    if (kind == TypeKind::NumberType || kind == TypeKind::FloatType) return bind_scalar(arg, kind);
    if (arg.default_value()) return {Binding::kConstant, *arg.default_value(), {}};
    if (type.kind() == TypeKind::OptionalType) return {Binding::kConstant, {}, {}};
    fail(LTC_INVALID_ARGUMENT, name_, "argument '" + arg.name() + "' is missing");
  }

  Binding bind_tensor(const c10::Argument& arg) {
    const auto values = take(1, arg);
    if (values[0] != LTC_NONE) return {Binding::kTensor, {}, values};
    if (is_tensor(*arg.type())) fail(LTC_INVALID_ARGUMENT, name_, "argument '" + arg.name() + "' must be given");
    return {Binding::kConstant, {}, {}};
  }

  Binding bind_tensors(const c10::Argument& arg) {
    const ltc_attr* count = find(arg.name() + ".count");
    if (count && (count->kind == LTC_ATTR_INT || count->kind == LTC_ATTR_INTS)) {
      const auto* list = without_optional(*arg.type()).castRaw<c10::ListType>();
      const auto kind = is_tensor(*list->getElementType()) ? Binding::kTensors : Binding::kOptionalTensors;
      return {kind, {}, take(static_cast<size_t>(count->value.ints[0]), arg)};
    }
    if (arg.type()->kind() == TypeKind::OptionalType) return {Binding::kConstant, {}, {}};
    fail(LTC_INVALID_ARGUMENT, name_, "attribute '" + arg.name() + ".count' is missing");
  }

  Binding bind_attr(const ltc_attr& attr, const c10::Argument& arg) {
    auto constant = constant_of(attr, arg);
    if (!constant) {
      fail(LTC_INVALID_ARGUMENT, name_,
           c10::str("attribute '", arg.name(), "' of kind ", attr.kind, " is no ", arg.type()->str()));
    }
    return {Binding::kConstant, std::move(*constant), {}};
  }

  Binding bind_scalar(const c10::Argument& arg, TypeKind kind) {
    const auto values = take(1, arg);
    if (values[0] == LTC_NONE) return {Binding::kConstant, arg.default_value().value_or(c10::IValue()), {}};
    if (!binder_.is_scalar(values[0])) fail(LTC_INVALID_ARGUMENT, name_, "argument '" + arg.name() + "' must be a scalar param");
    return {kind == TypeKind::FloatType ? Binding::kFloat : Binding::kScalar, {}, values};
  }

  c10::ArrayRef<uint32_t> take(size_t count, const c10::Argument& arg) {
    if (count > node_.input_count - next_) {
      fail(LTC_INVALID_ARGUMENT, name_, c10::str("has ", node_.input_count, " inputs, too few for '", arg.name(), "'"));
    }
    const c10::ArrayRef<uint32_t> values(node_.inputs + next_, count);
    for (uint32_t value : values) {
      if (value != LTC_NONE && value >= graph_.value_count)
        fail(LTC_INVALID_ARGUMENT, name_, c10::str("input ", value, " unknown"));
    }
    next_ += count;
    return values;
  }

  const Binder& binder_;
  const ltc_graph& graph_;
  const ltc_node& node_;
  const std::string_view name_;
  size_t next_ = 0;   // the first input not yet taken
  size_t attrs_ = 0;  // how many attributes were found
};

}  // namespace

std::optional<c10::OperatorHandle> find_operator(std::string_view name) {
  const size_t dot = name.find('.');
  const std::string_view overload = dot == name.npos ? std::string_view() : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({std::string(name.substr(0, dot)), std::string(overload)});
}

Binder::Binder(const ltc_graph& graph, c10::Device device) : graph_(graph), device_(device), scalar_(graph.value_count) {
  for (size_t i = 0; i < graph.param_count; ++i) {
    const ltc_param& param = *graph.params[i];
    if (param.value >= graph.value_count) {
      throw Failure(LTC_INVALID_ARGUMENT, c10::str("[lower] param ", i, " is value ", param.value, " of ", graph.value_count));
    }
    if (param.flags & LTC_PARAM_SCALAR) scalar_[param.value] = true;
  }
}

BoundNode Binder::bind(const ltc_node& node) const {
  const std::string_view name = text(node.name);
  const auto op = find_operator(computed_by(name, device_));
  if (!op) fail(LTC_UNSUPPORTED, name, "is no operator of this libtorch");
  check_supported(*op, device_, graph_, node);
  if (!writes(op->schema()) && !returns_list(op->schema()) && node.output_count > op->schema().returns().size()) {
    fail(LTC_INVALID_ARGUMENT, name, c10::str("has ", op->schema().returns().size(), " results, not ", node.output_count));
  }
  return {*op, NodeBinder(*this, graph_, node).bind(op->schema())};
}

bool makes_view(const c10::FunctionSchema& schema) { return !schema.returns().empty() && schema.returns()[0].alias_info(); }

bool is_written(const c10::Argument& arg) { return arg.alias_info() && arg.alias_info()->isWrite(); }

bool writes(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), is_written);
}

bool returns_list(const c10::FunctionSchema& schema) {
  return schema.returns().size() == 1 && is_tensor_list(*schema.returns()[0].type());
}

std::optional<c10::OperatorHandle> in_place_twin(const c10::OperatorHandle& op, c10::Device device) {
  const c10::FunctionSchema& schema = op.schema();
  if (schema.returns().size() != 1 || schema.returns()[0].alias_info()) return std::nullopt;
  const auto twin = c10::Dispatcher::singleton().findSchema({schema.name() + "_", schema.overload_name()});
  if (!twin || !runs_on(*twin, device)) return std::nullopt;
  const auto &ours = schema.arguments(), &theirs = twin->schema().arguments();
  if (ours.empty() || ours.size() != theirs.size() || twin->schema().returns().size() != 1) return std::nullopt;
  for (size_t i = 0; i < ours.size(); ++i) {
    const bool written = theirs[i].alias_info() && theirs[i].alias_info()->isWrite();
    if (ours[i].name() != theirs[i].name() || *ours[i].type() != *theirs[i].type() || written != (i == 0)) return std::nullopt;
  }
  return twin;
}

}  // namespace ltc::torchscript
