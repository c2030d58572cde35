#include "core/torch/record.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "core/torch/fallback.h"
#include "core/torch/recording.h"
#include "core/torch/transfer.h"

namespace ltc {
namespace {

// One boxed call of an op. Built, run, gone.
class Call {
 public:
  Call(OpEntry& entry, torch::jit::Stack& stack)
      : entry_(entry), stack_(stack), args_(stack.data() + (stack.size() - entry.args.size() - entry.out_count)) {}

  // Tries until nothing stands in the way: a stranger among the tensors, a signature not known yet, an output to be resized.
  void run() {
    while (!attempt()) {
    }
  }

 private:
  bool attempt() {
    Recording recording(entry_);
    collect(recording);
    if (recording.has_foreign() || !recording.device()) return admit_foreign(recording.device()), false;
    const Signature* signature;
    bool is_long;
    {
      Recorder recorder(*recording.device());
      signature = recording.find_signature(recorder);
      const bool recorded = signature && targets_fit(*signature);
      if (recorded) emit(recording, recorder, *signature);
      is_long = recorded && recorder.is_long();
    }
    if (!results_.empty()) {
      finish();
      if (is_long) recording.device()->end_trace();
      return true;
    }
    if (signature) return resize_targets(*signature), false;
    std::optional<Signature> inferred = infer(entry_, args_);
    if (!inferred) return run_eagerly(entry_, stack_, "what it gives is not known without its values"), true;
    return recording.remember(std::move(*inferred)), false;
  }

  void collect(Recording& recording) const {
    for (size_t i = 0; i < entry_.args.size(); ++i) {
      const c10::IValue& value = args_[i];
      switch (entry_.args[i].kind) {
        case ArgKind::kTensor: recording.add_tensor(tensor_impl(value)); break;
        case ArgKind::kTensorList: collect_list(recording, value); break;
        case ArgKind::kNumber: recording.add_number(entry_.args[i], value); break;
        case ArgKind::kPlacement:
          if (value.isDevice() && !recording.device()) recording.set_device(lazy_device(value.toDevice()));
          [[fallthrough]];
        case ArgKind::kConstant: recording.add_constant(value);
      }
    }
    for (size_t i = 0; i < entry_.out_count; ++i) {
      const at::Tensor& out = target(i);
      TORCH_CHECK(is_lazy(out), "Expected out tensor to have device ", kDeviceName, ", but got ", out.device(), " instead");
      recording.set_device(lazy_device(out));
    }
  }

  static const c10::TensorImpl* tensor_impl(const c10::IValue& value) {
    return value.isTensor() ? value.toTensor().unsafeGetTensorImpl() : nullptr;
  }

  static void collect_list(Recording& recording, const c10::IValue& value) {
    if (value.isNone()) return recording.add_absent();
    const auto elements = value.toListRef();
    recording.add_list(elements.size());
    for (const c10::IValue& element : elements) recording.add_tensor(tensor_impl(element));
  }

  // ---- CPU tensors that PyTorch lets an op of a device read (numbers, indices) are sent to the device; others are refused

  void admit_foreign(LazyDevice* device) {
    TORCH_CHECK(device, entry_.called.operator_name(), " was called for device ", kDeviceName, " without a tensor on it");
    for (size_t i = 0; i < entry_.args.size(); ++i) {
      c10::IValue& value = args_[i];
      if (value.isTensor()) {
        value = admit(*device, i, value.toTensor());
      } else if (value.isTensorList()) {
        auto tensors = value.toTensorVector();
        for (at::Tensor& tensor : tensors) tensor = admit(*device, i, tensor);
        value = std::move(tensors);
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> tensors;
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
          std::optional<at::Tensor> admitted;
          if (tensor) admitted = admit(*device, i, *tensor);
          tensors.push_back(std::move(admitted));
        }
        value = std::move(tensors);
      }
    }
  }

  at::Tensor admit(LazyDevice& device, size_t i, const at::Tensor& tensor) const {
    if (!tensor.defined() || is_lazy(tensor)) return tensor;
    const ArgKind kind = entry_.args[i].kind;
    if (kind == ArgKind::kTensor && is_number_tensor(tensor.unsafeGetTensorImpl())) return tensor;
    const bool is_index = entry_.flags & kCpuIndices && kind == ArgKind::kTensorList;
    TORCH_CHECK(tensor.device().type() == at::kCPU && (tensor.dim() == 0 || is_index),
                "Input tensor is not a lazy tensor: ", tensor.toString(), " of sizes ", tensor.sizes(), ", argument '",
                entry_.args[i].name, "' of ", entry_.called.operator_name(), "; move it with .to(\"", kDeviceName, "\")");
    return to_lazy(device, tensor);
  }

  // ---- results

  void emit(const Recording& recording, Recorder& recorder, const Signature& signature) {
    const ValueId node = recording.emit(recorder, signature);
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      const auto value = static_cast<ValueId>(node + i);
      const TypeId type = signature.outputs[i];
      if (i < target_count()) {
        const at::Tensor& to = target(i);
        write(recorder, to.unsafeGetTensorImpl(), emit_cast(recorder, value, to_dtype(to.scalar_type())));
        results_.push_back(to);
      } else {
        results_.push_back(type == kNoType ? at::Tensor() : recording.bind_fresh(recorder, value, type));
      }
    }
  }

  void finish() {
    torch::jit::drop(stack_, entry_.args.size() + entry_.out_count);
    for (at::Tensor& result : results_) stack_.emplace_back(std::move(result));
  }

  // ---- ops that write their arguments

  size_t target_count() const { return entry_.kind == OpKind::kInPlace ? 1 : entry_.out_count; }

  const at::Tensor& target(size_t i) const {
    return entry_.kind == OpKind::kInPlace ? args_[0].toTensor() : args_[entry_.args.size() + i].toTensor();
  }

  // Whether the results can be written as they are; throws where they never can.
  bool targets_fit(const Signature& signature) const {
    bool fit = true;
    for (size_t i = 0; i < target_count(); ++i) {
      const at::Tensor& to = target(i);
      const Type& type = type_of(signature.outputs[i]);
      const c10::ScalarType dtype = to_scalar_type(type.dtype);
      TORCH_CHECK(c10::canCast(dtype, to.scalar_type()), "result type ", dtype, " can't be cast to the desired output type ",
                  to.scalar_type());
      if (entry_.kind == OpKind::kOut || entry_.structured) at::assert_no_internal_overlap(to);
      if (std::ranges::equal(to.sizes(), type.sizes)) continue;
      TORCH_CHECK(entry_.kind == OpKind::kOut, "output with shape ", to.sizes(), " doesn't match the broadcast shape ",
                  c10::IntArrayRef(type.sizes));
      fit = false;
    }
    return fit;
  }

  void resize_targets(const Signature& signature) const {
    for (size_t i = 0; i < target_count(); ++i) {
      const Type& type = type_of(signature.outputs[i]);
      if (at::native::resize_output(target(i), type.sizes))
        target(i).unsafeGetTensorImpl()->set_sizes_and_strides(type.sizes, type.strides);
    }
  }

  OpEntry& entry_;
  torch::jit::Stack& stack_;
  c10::IValue* args_;
  c10::SmallVector<at::Tensor, 2> results_;
};

// While PyTorch's structured kernels compute a geometry, .out has nothing to do: the outputs are allocated.
void answer_inference(const OpEntry& entry, torch::jit::Stack& stack) {
  TORCH_CHECK(entry.out_count > 0, entry.called.operator_name(), " was called while inferring a shape");
  const size_t begin = stack.size() - entry.out_count;
  torch::jit::Stack outputs(stack.begin() + static_cast<int64_t>(begin), stack.end());
  torch::jit::drop(stack, entry.args.size() + entry.out_count);
  for (c10::IValue& output : outputs) stack.push_back(std::move(output));
}

}  // namespace

void record(OpEntry& entry, torch::jit::Stack& stack) {
  if (is_inferring()) [[unlikely]]
    return answer_inference(entry, stack);
  if (entry.kind == OpKind::kEager) return run_eagerly(entry, stack, entry.why_eager);
  Call(entry, stack).run();
}

void record_any(const c10::OperatorHandle& handle, torch::jit::Stack* stack) { record(OpEntry::of(handle), *stack); }

}  // namespace ltc
