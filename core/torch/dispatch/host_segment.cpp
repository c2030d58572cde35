// Host segments of a program: ATen's CPU kernels, one node after the other.
#include <ATen/ScalarOps.h>
#include <ATen/ops/from_blob.h>

#include "core/torch/dispatch/host_segment.h"
#include "core/torch/dispatch/infer.h"
#include "core/torch/dispatch/map_tensors.h"
#include "core/torch/tensor/generator.h"
#include "core/torch/tensor/number.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

// A CPU tensor over host memory that lives as long as the tensor.
at::Tensor wrap(const HostValue& value) {
  const Type& type = type_of(value.type);
  return at::from_blob(value.data.get(), type.sizes, at::TensorOptions().dtype(to_scalar_type(type.dtype)).device(at::kCPU));
}

// An error of the same type as `error`, one of Types or a plain one, with another message.
template <typename... Types>
[[noreturn]] void throw_again(const c10::Error& error, const std::string& message) {
  const c10::SourceLocation here{__func__, __FILE__, static_cast<uint32_t>(__LINE__)};
  const auto throw_if = [&]<typename Type>(std::type_identity<Type>) {
    if (dynamic_cast<const Type*>(&error)) throw Type(here, message);
  };
  (throw_if(std::type_identity<Types>{}), ...);
  throw c10::Error(here, message);
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

class HostSegment {
 public:
  HostSegment(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars)
      : graph_(graph), values_(graph.types.size()) {
    for (const Param& param : graph.params) {
      values_[param.value] = param.scalar
                                 ? c10::IValue(to_scalar(Number{graph.type(param.value).dtype, scalars[scalar_count_++]}))
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
    const c10::OperatorHandle op = find_op(name);
    const OpEntry& entry = writes(op.schema()) ? OpEntry::writing(op) : OpEntry::of(op);
    torch::jit::Stack stack = arguments(node, entry, op.schema());
    std::vector<at::Tensor> results;
    if (entry.kind == OpKind::kWriting) {
      copy_written(entry, stack);
      for (const at::Tensor& tensor : written_tensors(entry, stack.data())) results.push_back(tensor);
    }
    try {
      op.callBoxed(&stack);
    } catch (const c10::Error& error) {
      const std::string location = location_text(node.location);
      throw_again<c10::IndexError, c10::ValueError, c10::TypeError, c10::NotImplementedError, c10::LinAlgError,
                  c10::OutOfMemoryError>(
          error, cat(location, location.empty() ? "" : ": ", name, ": ", error.what_without_backtrace(), " [the CPU]"));
    }
    add_fresh(entry, stack, results);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) values_[node.outputs[i]] = results.at(i);
    }
  }

  static c10::OperatorHandle find_op(const std::string& name) {
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    return c10::Dispatcher::singleton().findSchemaOrThrow(name.substr(0, dot).c_str(), overload.c_str());
  }

  torch::jit::Stack arguments(const Node& node, const OpEntry& entry, const c10::FunctionSchema& schema) const {
    torch::jit::Stack stack;
    const bool has_strides = op_name(node.op).starts_with("aten::as_strided");  // they are those of row-major contents
    size_t next = 0;                                                            // of the node's inputs
    for (size_t i = 0; i < entry.args.size(); ++i) {
      const c10::Argument& arg = schema.arguments()[i];
      const Attr* attr = find_attr(attrs_of(node.attrs), arg.name());
      if (entry.args[i].kind == ArgKind::kTensor) {
        const bool absent = node.inputs[next] == kNone && arg.type()->kind() == c10::TypeKind::OptionalType;
        stack.push_back(absent ? c10::IValue()
                               : c10::IValue(has_strides ? tensor(node.inputs[next]).contiguous() : tensor(node.inputs[next])));
        ++next;
      } else if (entry.args[i].kind == ArgKind::kTensorList) {
        stack.push_back(list(node, arg, next));
      } else if (attr) {
        stack.push_back(constant_value(*attr, arg));
      } else if (entry.args[i].kind == ArgKind::kNumber) {
        const c10::Scalar number = values_[node.inputs[next++]].toScalar();
        const bool is_float = arg.type()->str().find("float") != std::string::npos;
        stack.push_back(is_float ? c10::IValue(number.toDouble()) : c10::IValue(number));
      } else {
        stack.push_back(arg.default_value() ? *arg.default_value() : c10::IValue());
      }
    }
    return stack;
  }

  // A node may write a value that others read. So it writes a copy.
  static void copy_written(const OpEntry& entry, torch::jit::Stack& args) {
    for (size_t i = 0; i < entry.args.size(); ++i) {
      if (!entry.args[i].written) continue;
      args[i] = map_tensors(args[i], [](const at::Tensor& tensor) { return tensor.defined() ? tensor.clone() : tensor; });
    }
  }

  static void add_fresh(const OpEntry& entry, const torch::jit::Stack& returned, std::vector<at::Tensor>& results) {
    for (size_t i = 0; i < returned.size(); ++i) {
      if (entry.returns[i] != OpEntry::kFresh) continue;
      if (returned[i].isTensorList()) {
        for (const at::Tensor& tensor : returned[i].toTensorVector()) results.push_back(tensor);
      } else {
        results.push_back(returned[i].toTensor());
      }
    }
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

}  // namespace

std::vector<HostValue> run_on_host(const Graph& graph, std::span<const HostValue> inputs, std::span<const Scalar> scalars) {
  c10::InferenceMode inference;
  return HostSegment(graph, inputs, scalars).run();
}

}  // namespace ltc
