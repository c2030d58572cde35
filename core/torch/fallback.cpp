#include "core/torch/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "core/run/fallback_policy.h"
#include "core/torch/generator.h"
#include "core/torch/infer.h"
#include "core/torch/transfer.h"

namespace ltc {
namespace {

// One call of a CPU kernel in the place of a lazy one.
class EagerCall {
 public:
  EagerCall(const OpEntry& entry, torch::jit::Stack& stack) : schema_(entry.called.schema()), stack_(stack) {}

  void run(const c10::OperatorHandle& op) {
    const size_t count = schema_.arguments().size();
    const size_t begin = stack_.size() - count;
    for (size_t i = 0; i < count; ++i) {
      const auto* alias = schema_.arguments()[i].alias_info();
      fetch(stack_[begin + i], alias && alias->isWrite());
      // No generator given means the device's own, not the CPU's.
      if (schema_.arguments()[i].name() == "generator" && stack_[begin + i].isNone() && device_) {
        stack_[begin + i] = cpu_generator_for(default_generator(static_cast<c10::DeviceIndex>(device_->ordinal())));
      }
    }
    op.callBoxed(&stack_);
    for (const auto& [lazy, cpu] : written_) send_back(lazy, cpu);
    for (size_t i = stack_.size() - schema_.returns().size(); i < stack_.size(); ++i) send(stack_[i]);
  }

  int64_t moved_bytes() const { return moved_bytes_; }

 private:
  at::Tensor fetch(const at::Tensor& tensor, bool is_written) {
    if (!tensor.defined() || !is_lazy(tensor)) return tensor;
    if (!device_) device_ = &lazy_device(tensor);
    at::Tensor cpu = to_cpu(tensor, metrics::kFallbackBarrier);
    moved_bytes_ += static_cast<int64_t>(cpu.nbytes());
    if (is_written) written_.emplace_back(tensor, cpu);
    if (gives_views_) viewed_.emplace_back(tensor, cpu);
    return cpu;
  }

  void fetch(c10::IValue& value, bool is_written) {
    if (value.isTensor()) {
      value = fetch(value.toTensor(), is_written);
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (at::Tensor& tensor : tensors) tensor = fetch(tensor, is_written);
      value = std::move(tensors);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        tensors.push_back(tensor ? std::optional(fetch(*tensor, is_written)) : std::nullopt);
      }
      value = std::move(tensors);
    } else if (value.isDevice()) {
      if (value.toDevice().type() == kLtc && !device_) device_ = &lazy_device(value.toDevice());
      value = c10::Device(at::kCPU);
    } else if (value.isGenerator()) {
      value = cpu_generator_for(value.toGenerator());
    }
  }

  // An op may have resized what it writes.
  void send_back(const at::Tensor& lazy, const at::Tensor& cpu) {
    if (lazy.sizes() != cpu.sizes()) lazy.resize_(cpu.sizes());
    write_cpu(lazy, cpu);
    moved_bytes_ += static_cast<int64_t>(cpu.nbytes());
  }

  at::Tensor send(const at::Tensor& result) {
    if (!result.defined() || !device_) return result;
    for (const auto& [lazy, cpu] : written_) {
      if (cpu.is_same(result)) return lazy;
    }
    for (const auto& [lazy, cpu] : viewed_) {  // a view op of another library: the same view of the lazy tensor
      if (cpu.is_alias_of(result) && cpu.scalar_type() == result.scalar_type())
        return lazy.as_strided(result.sizes(), result.strides(), result.storage_offset());
    }
    moved_bytes_ += static_cast<int64_t>(result.nbytes());
    return to_lazy(*device_, result);
  }

  void send(c10::IValue& value) {
    if (value.isTensor()) {
      value = send(value.toTensor());
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      for (at::Tensor& tensor : tensors) tensor = send(tensor);
      value = std::move(tensors);
    }
  }

  const c10::FunctionSchema& schema_;
  const bool gives_views_ = std::ranges::any_of(schema_.returns(), [](const auto& result) { return result.alias_info(); });
  torch::jit::Stack& stack_;
  LazyDevice* device_ = nullptr;
  int64_t moved_bytes_ = 0;                                          // both ways
  std::vector<std::pair<at::Tensor, at::Tensor>> written_, viewed_;  // lazy, its CPU stand-in
};

// A CPU tensor over host memory that lives as long as the tensor.
at::Tensor wrap(const HostValue& value) {
  const Type& type = type_of(value.type);
  return at::from_blob(value.data.get(), type.sizes, at::TensorOptions().dtype(to_scalar_type(type.dtype)).device(at::kCPU));
}

c10::Scalar to_scalar(const Type& type, const Scalar& value) {
  switch (type.dtype) {
    case DType::kF64: return value.f;
    case DType::kC128: return c10::complex<double>(value.c[0], value.c[1]);
    case DType::kBool: return value.i != 0;
    default: return value.i;
  }
}

c10::IValue constant_value(const Attr& attr, const c10::Argument& arg) {
  switch (attr.kind) {
    case AttrKind::kNone: return {};
    case AttrKind::kInt: return attr.ints[0];
    case AttrKind::kBool: return attr.ints[0] != 0;
    case AttrKind::kFloat: return attr.floats[0];
    case AttrKind::kString: return attr.strings[0];
    case AttrKind::kDType: return static_cast<int64_t>(to_scalar_type(static_cast<DType>(attr.ints[0])));
    case AttrKind::kFloats: return attr.floats;
    case AttrKind::kInts: {
      if (arg.type()->str().find("bool") == std::string::npos) return attr.ints;
      c10::List<bool> flags;
      for (const int64_t flag : attr.ints) flags.push_back(flag != 0);
      return flags;
    }
    case AttrKind::kStrings: break;
  }
  TORCH_CHECK(false, "attribute '", attr.name, "' has no form that a CPU kernel takes");
}

// Runs the nodes of a host segment one after the other with ATen's CPU kernels.
class HostSegment {
 public:
  HostSegment(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars)
      : graph_(graph), values_(graph.types.size()) {
    for (const Param& param : graph.params) {
      values_[param.value] = param.scalar ? c10::IValue(to_scalar(graph.type(param.value), scalars[scalar_count_++]))
                                          : c10::IValue(wrap(inputs[input_count_++]));
    }
  }

  std::vector<HostValue> run() {
    for (const Node& node : graph_.nodes) run(node);
    std::vector<HostValue> outputs;
    for (const ValueId output : graph_.outputs) {
      outputs.push_back(allocate_host_value(graph_.types[output]));
      wrap(outputs.back()).copy_(values_[output].toTensor());
    }
    return outputs;
  }

 private:
  at::Tensor tensor(ValueId value) const {
    if (value == kNone) return {};
    const c10::IValue& operand = values_[value];
    if (operand.isTensor()) return operand.toTensor();
    at::Tensor number = c10::scalar_to_tensor(operand.toScalar());
    number.unsafeGetTensorImpl()->set_wrapped_number(true);
    return number;
  }

  c10::IValue list(const Node& node, const c10::Argument& arg, size_t& next) const {
    const Attr* count = find_attr(attrs_of(node.attrs), arg.name() + ".count");
    ensure(count != nullptr, op_name(node.op), ": the list '", arg.name(), "' has no count");
    c10::List<at::Tensor> tensors;
    c10::List<std::optional<at::Tensor>> optional;
    for (int64_t i = 0; i < count->ints[0]; ++i, ++next) {
      tensors.push_back(tensor(node.inputs[next]));
      optional.push_back(node.inputs[next] == kNone ? std::nullopt : std::optional(tensor(node.inputs[next])));
    }
    return arg.type()->str().find("?") != std::string::npos || arg.type()->str().find("Optional") != std::string::npos
               ? c10::IValue(optional)
               : c10::IValue(tensors);
  }

  void run(const Node& node) {
    const std::string& name = op_name(node.op);
    if (name == "ltc::philox") return run_philox(node);
    const size_t dot = name.find('.');
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(),
                                                                   dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
    const bool is_writing = writes(op.schema());
    const OpEntry& entry = is_writing ? OpEntry::writing(op) : OpEntry::of(op);
    torch::jit::Stack stack;
    size_t next = 0;
    for (size_t i = 0; i < entry.args.size(); ++i) {
      const c10::Argument& arg = op.schema().arguments()[i];
      const Attr* attr = find_attr(attrs_of(node.attrs), arg.name());
      if (entry.args[i].kind == ArgKind::kTensor) {
        stack.emplace_back(tensor(node.inputs[next++]));
      } else if (entry.args[i].kind == ArgKind::kTensorList) {
        stack.push_back(list(node, arg, next));
      } else if (attr) {
        stack.push_back(constant_value(*attr, arg));
      } else if (entry.args[i].kind == ArgKind::kNumber) {
        const c10::Scalar number = values_[node.inputs[next++]].toScalar();
        stack.push_back(arg.type()->str().find("float") != std::string::npos ? c10::IValue(number.toDouble())
                                                                             : c10::IValue(number));
      } else {
        stack.push_back(arg.default_value() ? *arg.default_value() : c10::IValue());
      }
    }
    std::vector<at::Tensor> results;
    if (is_writing) {
      for (size_t i = 0; i < entry.args.size(); ++i) {
        if (entry.args[i].written) stack[i] = copied(stack[i]);
      }
      for (const at::Tensor& tensor : written_tensors(entry, stack.data())) results.push_back(tensor);
    }
    try {
      op.callBoxed(&stack);
    } catch (c10::Error& error) {
      error.add_context(cat("in ", name, at_location(node.location)));
      throw;
    }
    for (size_t i = 0; i < stack.size(); ++i) {
      if (entry.returns[i] != OpEntry::kFresh) continue;
      if (stack[i].isTensorList()) {
        for (const at::Tensor& tensor : stack[i].toTensorVector()) results.push_back(tensor);
      } else {
        results.push_back(stack[i].toTensor());
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) values_[node.outputs[i]] = results.at(i);
    }
  }

  // What a node writes may be a value that others read.
  static c10::IValue copied(const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().clone();
    if (!value.isTensorList()) return value;
    std::vector<at::Tensor> tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) tensor = tensor.clone();
    return tensors;
  }

  void run_philox(const Node& node) {
    const Type& type = graph_.type(node.outputs[0]);
    HostValue bits = allocate_host_value(graph_.types[node.outputs[0]]);
    philox_fill(type, static_cast<uint64_t>(values_[node.inputs[0]].toInt()),
                static_cast<uint64_t>(values_[node.inputs[1]].toInt()), bits.data.get());
    values_[node.outputs[0]] = wrap(bits).clone();
  }

  const Graph& graph_;
  std::vector<c10::IValue> values_;  // by value id: a tensor or a number
  size_t input_count_ = 0, scalar_count_ = 0;
};

std::vector<HostValue> run_on_host(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars) {
  c10::InferenceMode inference;
  return HostSegment(graph, inputs, scalars).run();
}

}  // namespace

void run_eagerly(const OpEntry& entry, torch::jit::Stack& stack, const char* reason) {
  const std::string name = toString(entry.called.operator_name());
  check_fallback(name, reason, current_location());
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  EagerCall call(entry, stack);
  call.run(entry.called);
  count_fallback(name, call.moved_bytes());
}

void install_host_runner() { set_host_runner(&run_on_host); }

}  // namespace ltc
