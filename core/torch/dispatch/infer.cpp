#include "core/torch/dispatch/infer.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "core/report/metrics.h"
#include "core/torch/dispatch/dummy_inputs.h"
#include "core/torch/dispatch/map_tensors.h"
#include "core/torch/dispatch/shape_rules.h"
#include "core/torch/dispatch/small_calls.h"

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

// The CPU kernel itself, once, on dummy inputs. Exact by construction, strides included, and costs one eager run of the op per
// new combination of types. Where no filling suits it, the op runs eagerly on the values, which also raises the user's error in
// the op's own words.
std::optional<std::vector<TypeId>> infer_on_cpu(const OpEntry& entry, const torch::jit::Stack& stack) {
  for (const Fill fill : kFills) {
    if (auto outputs = try_on(entry, dummy_inputs(stack, fill, false))) return outputs;
  }
  return std::nullopt;
}

// ---- calls that are too large to be tried

std::atomic<double> g_dry_run_limit = 128 << 20;  // bytes of operands and results

// The bytes of dummy inputs: a few elements may lie far apart.
double operand_bytes(const torch::jit::Stack& stack) {
  double bytes = 0;
  for_each_tensor(stack, [&](const at::Tensor& tensor) {
    if (tensor.numel() == 0) return;
    double last = 0;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      last += static_cast<double>(tensor.size(dim) - 1) * static_cast<double>(tensor.stride(dim));
    }
    bytes += (last + 1) * static_cast<double>(tensor.itemsize());
  });
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

// The elements of a result with as many rows and columns as the longest dim is long: of vectors a matrix may come.
double elements_of_square(const torch::jit::Stack& stack) {
  int64_t longest = 0;
  for_each_tensor(stack, [&](const at::Tensor& tensor) {
    for (const int64_t size : tensor.sizes()) longest = std::max(longest, size);
  });
  return static_cast<double>(longest) * static_cast<double>(longest);
}

// Ops whose shape functions give other sizes or types than the CPU's kernels do.
constexpr std::string_view kKernelKnowsBetter[] = {"aten::_embedding_bag", "aten::_embedding_bag_forward_only",
                                                   "aten::native_layer_norm"};

// The answer of PyTorch's shape function for its device without memory. Most of these functions are Python, and the first one
// imports much, so they come last.
std::optional<std::vector<TypeId>> infer_on_meta(const OpEntry& entry, const torch::jit::Stack& stack) {
  const std::string& name = entry.recorded->operator_name().name;
  if (std::ranges::find(kKernelKnowsBetter, name) != std::end(kKernelKnowsBetter)) return std::nullopt;
  return try_on(entry, dummy_inputs(stack, Fill::kZeros, false, at::kMeta));
}

// Recurrent layers keep memory for their gradients whose size oneDNN alone knows. With another size they would write beyond it.
// The rows of packed ones are as many as `batch_sizes` says.
bool can_be_small(const OpEntry& entry) {
  const std::string_view name = entry.recorded->operator_name().name;
  constexpr std::string_view kRecurrent[] = {"ltc::lstm_layer", "ltc::gru_layer", "ltc::packed_", "aten::mkldnn_rnn_layer"};
  return std::ranges::none_of(kRecurrent, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// Whether the op may make a matrix from a vector: gradients, and what PyTorch calls itself, do not.
bool may_make_square(const OpEntry& entry) {
  const std::string_view name = entry.recorded->operator_name().name;
  return name.starts_with("aten::") && !name.starts_with("aten::_") && name.find("backward") == name.npos;
}

// The results of a call that would take much to try; nothing for all others.
std::optional<std::vector<TypeId>> infer_if_large(const OpEntry& entry, const torch::jit::Stack& stack, bool asks_kernel) {
  const double bytes = operand_bytes(stack), limit = g_dry_run_limit;
  const bool is_large = bytes > limit || most_elements(entry, stack) * sizeof(double) > limit;
  if (!is_large && (!may_make_square(entry) || elements_of_square(stack) * sizeof(double) <= limit)) return std::nullopt;
  auto outputs = can_be_small(entry) ? infer_from_small_calls(entry, stack, asks_kernel) : std::nullopt;
  if (!outputs && is_large) outputs = infer_on_meta(entry, stack);
  return outputs && bytes + bytes_of(*outputs) > limit ? outputs : std::nullopt;
}

bool is_of_other_library(const OpEntry& entry) {
  const std::string& name = entry.recorded->operator_name().name;
  return !name.starts_with("aten::") && !name.starts_with("ltc::");
}

// Ops of other libraries: what they give for dummy inputs says nothing, as sizes may depend on values. Their shape function does
// (register_fake, a Meta kernel); one without runs eagerly.
std::optional<std::vector<TypeId>> infer_by_meta(const OpEntry& entry, const torch::jit::Stack& stack) {
  if (entry.kind == OpKind::kWriting || !entry.recorded->hasKernelForDispatchKey(c10::DispatchKey::Meta)) return std::nullopt;
  return try_on(entry, dummy_inputs(stack, Fill::kZeros, false, at::kMeta));
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

// Whether a word of no known meaning chooses what is computed: kernels refuse it, shape functions of some ops do not look at it.
bool is_chosen_by_word(const OpEntry& entry, const c10::IValue* args) {
  const bool is_gelu = entry.recorded->operator_name().name.starts_with("aten::gelu") && args[0].toTensor().is_floating_point() &&
                       (!args[1].isTensor() || args[1].toTensor().is_floating_point());
  return std::any_of(args, args + entry.args.size(), [&](const c10::IValue& value) {
    return value.isString() && !(is_gelu && (value.toStringRef() == "none" || value.toStringRef() == "tanh"));
  });
}

std::optional<std::vector<TypeId>> infer_outputs(const OpEntry& entry, const c10::IValue* args, bool asks_kernel) {
  const torch::jit::Stack stack(args, args + entry.args.size());
  if (!asks_kernel) {
    if (auto outputs = apply_shape_rule(entry, args)) return outputs;
    if (entry.structured && !mixes_precisions(entry, args) && !indexes_nothing(entry, args) && !is_chosen_by_word(entry, args)) {
      std::vector<TypeId> outputs;
      add_results(infer_structured(entry, stack), {}, outputs);
      if (!converts_first(entry, stack, outputs)) return outputs;
    }
  }
  if (is_of_other_library(entry)) return infer_by_meta(entry, stack);
  if (auto outputs = infer_if_large(entry, stack, asks_kernel)) return outputs;
  return infer_on_cpu(entry, stack);
}

// Whether it writes nothing but outputs without elements, of the results' types: they are resized.
bool fills_empty_outputs(const OpEntry& entry, const c10::IValue* args, const Signature& signature) {
  const c10::SmallVector<at::Tensor, 2> targets = written_tensors(entry, args);
  if (entry.kind != OpKind::kOut || targets.size() != signature.outputs.size()) return false;
  for (size_t i = 0; i < targets.size(); ++i) {
    const TypeId type = signature.outputs[i];
    if (type == kNoType || targets[i].numel() > 0 || to_dtype(targets[i].scalar_type()) != type_of(type).dtype) return false;
  }
  return true;
}

}  // namespace

bool is_inferring() { return t_inferring; }

void set_dry_run_limit(double bytes) { g_dry_run_limit = bytes; }

std::optional<Signature> infer(const OpEntry& entry, const c10::IValue* args, bool asks_kernel) {
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  auto outputs = infer_outputs(entry, args, asks_kernel);
  if (!outputs) return std::nullopt;
  return Signature{std::move(*outputs), node_attrs(entry, args)};
}

std::vector<TypeId> dry_run(const OpEntry& entry, const c10::IValue* args, const Signature& signature) {
  static metrics::Counter& dry_runs = metrics::counter(metrics::kDryRuns);
  ++dry_runs;
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  const torch::jit::Stack stack(args, args + entry.args.size() + entry.out_count);
  const bool is_large = operand_bytes(stack) + bytes_of(signature.outputs) > g_dry_run_limit;
  if (is_large && fills_empty_outputs(entry, args, signature)) return signature.outputs;
  const c10::DeviceType device = is_large ? at::kMeta : at::kCPU;
  std::exception_ptr first;
  for (const Fill fill : kFills) {
    const torch::jit::Stack dummies = dummy_inputs(stack, fill, true, device);
    torch::jit::Stack results = dummies;
    try {
      entry.called.callBoxed(&results);
    } catch (...) {
      if (!first) first = std::current_exception();
      continue;
    }
    std::vector<TypeId> geometries;
    for (const at::Tensor& tensor : written_tensors(entry, dummies.data())) geometries.push_back(type_of_result(tensor));
    return geometries;
  }
  std::rethrow_exception(first);
}

}  // namespace ltc
