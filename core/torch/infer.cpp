#include "core/torch/infer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>

#include "core/base/log.h"

namespace ltc {
namespace {

thread_local bool t_inferring = false;

struct InferringScope {
  InferringScope() { t_inferring = true; }
  ~InferringScope() { t_inferring = false; }
};

// Structured ops: their composite kernel computes the geometry, allocates through our empty_strided and calls .out, which does
// nothing meanwhile. A backend key without kernels is the way to reach that composite from below our own kernel.
torch::jit::Stack infer_structured(const OpEntry& entry, torch::jit::Stack stack) {
  InferringScope scope;
  entry.functional->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse3), &stack);
  return stack;
}

at::Tensor zeros_like(const at::Tensor& tensor, c10::DeviceType device) {
  if (!tensor.defined() || !is_lazy(tensor)) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device)).zero_();
}

// The argument with zeros on another device in the place of lazy tensors.
c10::IValue placed(const c10::IValue& value, c10::DeviceType device) {
  if (value.isTensor()) return zeros_like(value.toTensor(), device);
  if (value.isDevice()) return c10::Device(device);
  if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) tensor = zeros_like(tensor, device);
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      tensors.push_back(tensor ? std::optional(zeros_like(*tensor, device)) : std::nullopt);
    }
    return tensors;
  }
  return value;
}

std::optional<torch::jit::Stack> try_call(const c10::OperatorHandle& op, torch::jit::Stack stack) {
  try {
    op.callBoxed(&stack);
    return stack;
  } catch (const std::exception& error) {
    log::debug("the shape of ", op.operator_name(), " is not known from zeros: ", error.what());
    return std::nullopt;
  }
}

// All others: the CPU kernel itself, once, on zeros of the same geometry. Exact by construction, strides included, and costs one
// eager run of the op per new combination of types. Zeros are a legal input of nearly everything; where they are not (a singular
// matrix), the op runs eagerly on the values, which also raises the user's error in the op's own words.
std::optional<torch::jit::Stack> infer_on_cpu(const OpEntry& entry, torch::jit::Stack stack) {
  for (c10::IValue& value : stack) value = placed(value, at::kCPU);
  return try_call(*entry.functional, std::move(stack));
}

// Ops of other libraries: what they give for zeros says nothing, as sizes may depend on values. Their shape function does
// (register_fake, a Meta kernel); one without runs eagerly.
std::optional<torch::jit::Stack> infer_by_meta(const OpEntry& entry, torch::jit::Stack stack) {
  if (!entry.functional->hasKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
  for (c10::IValue& value : stack) value = placed(value, at::kMeta);
  return try_call(*entry.functional, std::move(stack));
}

bool is_of_pytorch(const OpEntry& entry) { return entry.functional->operator_name().name.starts_with("aten::"); }

Attr constant_attr(const Arg& arg, const c10::IValue& value) {
  Attr attr{arg.name};
  const auto set = [&](AttrKind kind) { attr.kind = kind; };
  if (value.isNone()) return attr;
  if (arg.is_dtype) return Attr::of_dtype(arg.name, to_dtype(static_cast<c10::ScalarType>(value.toInt())));
  if (value.isBool()) {
    set(AttrKind::kBool), attr.ints = {value.toBool()};
  } else if (value.isInt()) {
    set(AttrKind::kInt), attr.ints = {value.toInt()};
  } else if (value.isDouble()) {
    set(AttrKind::kFloat), attr.floats = {value.toDouble()};
  } else if (value.isString()) {
    set(AttrKind::kString), attr.strings = {value.toStringRef()};
  } else if (value.isIntList()) {
    set(AttrKind::kInts), attr.ints = value.toIntVector();
  } else if (value.isDoubleList()) {
    set(AttrKind::kFloats), attr.floats = value.toDoubleVector();
  } else if (value.isBoolList()) {
    set(AttrKind::kInts);
    for (const bool flag : value.toBoolList()) attr.ints.push_back(flag);
  } else {
    TORCH_CHECK(false, "argument '", arg.name, "' of type ", value.tagKind(), " cannot be part of a graph");
  }
  return attr;
}

// Constants, counts of lists, and numbers that have their default value.
AttrsId node_attrs(const OpEntry& entry, const c10::IValue* args) {
  AttrList attrs;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const Arg& arg = entry.args[i];
    if (arg.kind == ArgKind::kTensorList) {
      const size_t count = args[i].isNone() ? 0 : args[i].toListRef().size();
      attrs.push_back(Attr::of_int(arg.name + ".count", static_cast<int64_t>(count)));
    } else if (arg.kind == ArgKind::kConstant || (arg.kind == ArgKind::kNumber && is_default_number(arg, args[i]))) {
      attrs.push_back(constant_attr(arg, args[i]));
    }
  }
  return intern_attrs(attrs);
}

TypeId type_of_result(const at::Tensor& result) {
  TORCH_CHECK(result.layout() == c10::kStrided, "device ", kDeviceName, " has strided tensors only, not ", result.layout());
  const TypeId id = intern_type(to_dtype(result.scalar_type()), as_span(result.sizes()), as_span(result.strides()));
  return type_of(id).dense ? id : intern_contiguous(type_of(id).dtype, type_of(id).sizes);
}

// PyTorch's shape functions leave it to the kernels to refuse a product of float and double.
bool mixes_precisions(const OpEntry& entry, const c10::IValue* args) {
  std::optional<c10::ScalarType> met;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    if (!args[i].isTensor() || !args[i].toTensor().defined()) continue;
    const at::Tensor& tensor = args[i].toTensor();
    if (!tensor.is_floating_point() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) continue;
    if (met && *met != tensor.scalar_type()) return true;
    met = tensor.scalar_type();
  }
  return false;
}

}  // namespace

bool is_inferring() { return t_inferring; }

bool is_default_number(const Arg& arg, const c10::IValue& value) {
  if (value.isNone()) return true;
  if (!arg.default_value) return false;
  const c10::IValue& standard = *arg.default_value;
  if (value.isInt() && standard.isInt()) return value.toInt() == standard.toInt();
  if (value.isDouble() && standard.isDouble()) return value.toDouble() == standard.toDouble();
  return value.isBool() && standard.isBool() && value.toBool() == standard.toBool();
}

std::optional<Signature> infer(const OpEntry& entry, const c10::IValue* args) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack(args, args + entry.args.size());
  std::optional<torch::jit::Stack> results;
  if (!is_of_pytorch(entry)) {
    results = infer_by_meta(entry, std::move(stack));
  } else if (entry.structured && !mixes_precisions(entry, args)) {
    results = infer_structured(entry, std::move(stack));
  } else {
    results = infer_on_cpu(entry, std::move(stack));
  }
  if (!results) return std::nullopt;
  Signature signature;
  for (const c10::IValue& result : *results) {
    const bool defined = result.isTensor() && result.toTensor().defined();
    signature.outputs.push_back(defined ? type_of_result(result.toTensor()) : kNoType);
  }
  signature.attrs = node_attrs(entry, args);
  return signature;
}

}  // namespace ltc
