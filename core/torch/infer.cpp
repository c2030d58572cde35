#include "core/torch/infer.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/base/log.h"
#include "core/run/metrics.h"
#include "core/torch/map_tensors.h"
#include "core/torch/shape_rules.h"
#include "core/torch/why.h"

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
  entry.recorded->redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse3), &stack);
  return stack;
}

// What the stand-ins hold. Zeros are a legal input of nearly everything; some ops want a regular matrix or a divisor.
enum class Fill { kZeros, kRegular, kOnes };

// Tensors of the geometries of lazy ones, on the CPU or without data; on request those that share a storage do so afterwards too.
class StandIns {
 public:
  StandIns(Fill fill, bool share, c10::DeviceType device) : fill_(fill), share_(share), device_(device) {}

  c10::IValue operator()(const c10::IValue& value) {
    if (value.isDevice()) return c10::Device(device_);
    return map_tensors(value, [this](const at::Tensor& tensor) { return for_tensor(tensor); });
  }

 private:
  at::Tensor for_tensor(const at::Tensor& tensor) {
    if (!tensor.defined() || !is_lazy(tensor)) return tensor;
    if (!share_) return filled(at::empty_strided(tensor.sizes(), tensor.strides(), options_for(tensor)));
    at::Tensor& known = of_tensor_[tensor.unsafeGetTensorImpl()];  // kernels ask whether an output is an operand
    return known.defined() ? known : known = over_shared_memory(tensor);
  }

  at::Tensor over_shared_memory(const at::Tensor& tensor) {
    at::Tensor& memory = of_storage_[tensor.storage().unsafeGetStorageImpl()];
    const auto bytes = static_cast<int64_t>(tensor.storage().nbytes());
    if (!memory.defined()) memory = at::zeros({bytes}, options_for(tensor).dtype(at::kByte));
    at::Tensor result = at::empty({0}, options_for(tensor));
    return filled(result.set_(memory.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides()));
  }

  at::TensorOptions options_for(const at::Tensor& tensor) const { return tensor.options().device(device_); }

  at::Tensor filled(at::Tensor tensor) const {
    if (fill_ == Fill::kOnes) return tensor.fill_(1);
    tensor.zero_();
    const bool is_number = tensor.is_floating_point() || tensor.is_complex();
    if (fill_ == Fill::kRegular && is_number) tensor.dim() < 2 ? tensor.fill_(1) : tensor.diagonal(0, -2, -1).fill_(1);
    return tensor;
  }

  const Fill fill_;
  const bool share_;
  const c10::DeviceType device_;
  std::unordered_map<c10::StorageImpl*, at::Tensor> of_storage_;
  std::unordered_map<c10::TensorImpl*, at::Tensor> of_tensor_;
};

torch::jit::Stack stand_ins(const torch::jit::Stack& stack, Fill fill, bool share, c10::DeviceType device = at::kCPU) {
  StandIns stand_in(fill, share, device);
  torch::jit::Stack result;
  for (const c10::IValue& value : stack) result.push_back(stand_in(value));
  return result;
}

TypeId type_of_result(const at::Tensor& result) {
  TORCH_CHECK(result.layout() == c10::kStrided, "device ", kDeviceName, " makes no tensor of layout ", result.layout());
  const TypeId id = intern_type(to_dtype(result.scalar_type()), as_span(result.sizes()), as_span(result.strides()));
  return type_of(id).dense ? id : intern_contiguous(type_of(id).dtype, type_of(id).sizes);
}

// The results of a call, on its stack, as outputs of a node.
void add_results(const torch::jit::Stack& results, const std::vector<size_t>& returns, std::vector<TypeId>& outputs) {
  const auto add = [&](const at::Tensor& tensor) { outputs.push_back(tensor.defined() ? type_of_result(tensor) : kNoType); };
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < returns.size() && returns[i] != OpEntry::kFresh) continue;
    if (!results[i].isTensorList()) {
      add(results[i].isTensor() ? results[i].toTensor() : at::Tensor());
      continue;
    }
    for (const at::Tensor& tensor : results[i].toTensorVector()) add(tensor);
  }
}

// What a call of stand-ins gives; nothing if it throws.
std::optional<std::vector<TypeId>> try_on(const OpEntry& entry, const torch::jit::Stack& args) {
  const bool is_writing = entry.kind == OpKind::kWriting;
  torch::jit::Stack results = args;
  try {
    entry.recorded->callBoxed(&results);
  } catch (const std::exception& error) {
    log::debug("the shape of ", entry.recorded->operator_name(), " is not known from stand-ins: ", why(error));
    return std::nullopt;
  }
  std::vector<TypeId> outputs;
  if (is_writing) {
    for (const at::Tensor& tensor : written_tensors(entry, args.data())) outputs.push_back(type_of_result(tensor));
  }
  add_results(results, is_writing ? entry.returns : std::vector<size_t>(), outputs);
  return outputs;
}

// The CPU kernel itself, once, on stand-ins. Exact by construction, strides included, and costs one eager run of the op per new
// combination of types. Where no filling suits it, the op runs eagerly on the values, which also raises the user's error in the
// op's own words.
std::optional<std::vector<TypeId>> infer_on_cpu(const OpEntry& entry, const torch::jit::Stack& stack) {
  for (const Fill fill : {Fill::kZeros, Fill::kRegular, Fill::kOnes}) {
    if (auto outputs = try_on(entry, stand_ins(stack, fill, false))) return outputs;
  }
  return std::nullopt;
}

// ---- calls that are too large to be tried

constexpr double kLargestTrial = 128 << 20;  // bytes of operands and results

template <typename Visit>
void for_each_tensor(const torch::jit::Stack& stack, const Visit& visit) {
  const auto visit_defined = [&](const at::Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
  };
  for (const c10::IValue& value : stack) {
    if (value.isTensor()) visit_defined(value.toTensor());
    if (!value.isList()) continue;
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor()) visit_defined(element.toTensor());
    }
  }
}

double operand_bytes(const torch::jit::Stack& stack) {
  double bytes = 0;
  for_each_tensor(stack, [&](const at::Tensor& tensor) { bytes += static_cast<double>(tensor.numel()) * tensor.itemsize(); });
  return bytes;
}

double bytes_of(const std::vector<TypeId>& types) {
  double bytes = 0;
  for (const TypeId type : types) {
    if (type != kNoType) bytes += static_cast<double>(type_of(type).size_bytes());
  }
  return bytes;
}

// About as many elements as results may have that are larger than the operands.
double most_elements(const OpEntry& entry, const torch::jit::Stack& stack) {
  double product = 1;
  const auto multiply = [&](int64_t size) { product *= std::max(1.0, std::abs(static_cast<double>(size))); };
  std::vector<int64_t> broadcast;  // from the last dim on
  bool has_tensors = false;
  for_each_tensor(stack, [&](const at::Tensor& tensor) {
    has_tensors = true;
    broadcast.resize(std::max<size_t>(broadcast.size(), tensor.dim()), 1);
    for (int64_t dim = 1; dim <= tensor.dim(); ++dim) broadcast[dim - 1] = std::max(broadcast[dim - 1], tensor.size(-dim));
  });
  const bool repeats = entry.recorded->operator_name().name == "aten::repeat";
  if (repeats || entry.recorded->hasTag(at::Tag::pointwise)) std::ranges::for_each(broadcast, multiply);
  for (const c10::IValue& value : stack) {
    if (value.isInt() && !has_tensors) multiply(value.toInt());
    if (value.isIntList()) std::ranges::for_each(value.toIntVector(), multiply);
  }
  return product;
}

// Ops whose shape functions give other sizes or types than the CPU's kernels do.
constexpr std::string_view kKernelKnowsBetter[] = {"aten::_embedding_bag", "aten::_embedding_bag_forward_only",
                                                   "aten::native_layer_norm"};

// What PyTorch's shape function for its device without memory says of a call that would take much to try. Nothing for all others,
// and where there is no such function. Its strides are those of the CPU's kernel but for few ops, and only in unusual layouts.
// Most of these functions are Python, and the first one imports much: more than a trial of usual size takes.
std::optional<std::vector<TypeId>> infer_if_large(const OpEntry& entry, const torch::jit::Stack& stack) {
  const double bytes = operand_bytes(stack);
  if (bytes <= kLargestTrial && most_elements(entry, stack) * sizeof(double) <= kLargestTrial) return std::nullopt;
  if (std::ranges::find(kKernelKnowsBetter, entry.recorded->operator_name().name) != std::end(kKernelKnowsBetter))
    return std::nullopt;
  auto outputs = try_on(entry, stand_ins(stack, Fill::kZeros, false, at::kMeta));
  return outputs && bytes + bytes_of(*outputs) > kLargestTrial ? outputs : std::nullopt;
}

bool is_of_other_library(const OpEntry& entry) {
  const std::string& name = entry.recorded->operator_name().name;
  return !name.starts_with("aten::") && !name.starts_with("ltc::");
}

// Ops of other libraries: what they give for stand-ins says nothing, as sizes may depend on values. Their shape function does
// (register_fake, a Meta kernel); one without runs eagerly.
std::optional<std::vector<TypeId>> infer_by_meta(const OpEntry& entry, const torch::jit::Stack& stack) {
  if (entry.kind == OpKind::kWriting || !entry.recorded->hasKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
  return try_on(entry, stand_ins(stack, Fill::kZeros, false, at::kMeta));
}

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
    } else if (arg.kind == ArgKind::kConstant || (arg.kind == ArgKind::kNumber && arg.is_default(to_number(args[i])))) {
      attrs.push_back(constant_attr(arg, args[i]));
    }
  }
  return intern_attrs(attrs);
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

// Whether the CPU converts operands before it chooses the strides of the result by theirs: a converted copy has no gaps, and no
// repeated elements. PyTorch does so for the CPU alone.
bool converts_first(const OpEntry& entry, const torch::jit::Stack& stack, const std::vector<TypeId>& outputs) {
  if (outputs.size() != 1 || !entry.recorded->hasTag(at::Tag::pointwise)) return false;
  const bool is_exact = c10::isIntegralType(to_scalar_type(type_of(outputs[0]).dtype), true);
  std::optional<c10::ScalarType> met;
  bool converts = false, has_plain_strides = true;
  for_each_tensor(stack, [&](const at::Tensor& tensor) {
    if (tensor.dim() == 0) return;
    converts |= (met && *met != tensor.scalar_type()) || (!is_exact && c10::isIntegralType(tensor.scalar_type(), true));
    met = tensor.scalar_type();
    has_plain_strides &= tensor.is_contiguous();
  });
  return converts && !has_plain_strides;
}

// Whether indices go into a tensor without elements: their kernels refuse that, shape functions do not, and nothing of the result
// is ever computed.
bool indexes_nothing(const OpEntry& entry, const c10::IValue* args) {
  if (!args[0].isTensor() || !args[0].toTensor().defined() || args[0].toTensor().numel() > 0) return false;
  for (size_t i = 1; i < entry.args.size(); ++i) {
    if (entry.args[i].name == "index" && args[i].isTensor()) return args[i].toTensor().numel() > 0;
  }
  return false;
}

std::optional<std::vector<TypeId>> infer_outputs(const OpEntry& entry, const c10::IValue* args, bool asks_kernel) {
  const torch::jit::Stack stack(args, args + entry.args.size());
  if (!asks_kernel) {
    if (auto outputs = apply_shape_rule(entry, args)) return outputs;
    if (entry.structured && !mixes_precisions(entry, args) && !indexes_nothing(entry, args)) {
      std::vector<TypeId> outputs;
      add_results(infer_structured(entry, stack), {}, outputs);
      if (!converts_first(entry, stack, outputs)) return outputs;
    }
  }
  if (is_of_other_library(entry)) return infer_by_meta(entry, stack);
  if (auto outputs = infer_if_large(entry, stack)) return outputs;
  return infer_on_cpu(entry, stack);
}

}  // namespace

bool is_inferring() { return t_inferring; }

std::optional<Signature> infer(const OpEntry& entry, const c10::IValue* args, bool asks_kernel) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  auto outputs = infer_outputs(entry, args, asks_kernel);
  if (!outputs) return std::nullopt;
  return Signature{std::move(*outputs), node_attrs(entry, args)};
}

std::vector<TypeId> rehearse(const OpEntry& entry, const c10::IValue* args, const Signature& signature) {
  static metrics::Counter& rehearsals = metrics::counter(metrics::kRehearsals);
  ++rehearsals;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const torch::jit::Stack stack(args, args + entry.args.size() + entry.out_count);
  const bool is_large = operand_bytes(stack) + bytes_of(signature.outputs) > kLargestTrial;
  const c10::DeviceType device = is_large ? at::kMeta : at::kCPU;
  std::exception_ptr first;
  for (const Fill fill : {Fill::kZeros, Fill::kRegular, Fill::kOnes}) {
    const torch::jit::Stack stand_in = stand_ins(stack, fill, true, device);
    torch::jit::Stack results = stand_in;
    try {
      entry.called.callBoxed(&results);
    } catch (...) {
      if (!first) first = std::current_exception();
      continue;
    }
    std::vector<TypeId> geometries;
    for (const at::Tensor& tensor : written_tensors(entry, stand_in.data())) geometries.push_back(type_of_result(tensor));
    return geometries;
  }
  std::rethrow_exception(first);
}

c10::SmallVector<at::Tensor, 2> written_tensors(const OpEntry& entry, const c10::IValue* args) {
  c10::SmallVector<at::Tensor, 2> tensors;
  const auto add = [&](const at::Tensor& tensor) {
    if (tensor.defined()) tensors.push_back(tensor);
  };
  for (size_t i = 0; i < entry.args.size() + entry.out_count; ++i) {
    if (i < entry.args.size() && !entry.args[i].written) continue;
    if (args[i].isTensor()) {
      add(args[i].toTensor());
    } else if (args[i].isTensorList()) {
      for (const at::Tensor& tensor : args[i].toTensorVector()) add(tensor);
    }
  }
  return tensors;
}

}  // namespace ltc
