#include "core/torch/dispatch/boxed_kernel.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "core/torch/dispatch/fallback.h"
#include "core/torch/dispatch/large_numbers.h"
#include "core/torch/dispatch/map_tensors.h"
#include "core/torch/dispatch/recording.h"
#include "core/torch/tensor/transfer.h"

namespace ltc {
namespace {

constexpr const char* kNoSuchConstants =
    "programs have no complex constants, and no integers of 2^63 and more among other numbers";

// One boxed call of an op. Built, run, gone.
class Call {
 public:
  Call(OpEntry& entry, torch::jit::Stack& stack)
      : entry_(entry), stack_(stack), args_(stack.data() + (stack.size() - entry.args.size() - entry.out_count)) {
    if (entry.kind != OpKind::kFunctional) targets_ = written_tensors(entry, args_);
  }

  // Tries until nothing stands in the way: a stranger among the tensors, a signature not known yet, an output to be resized.
  void run() {
    while (!attempt()) {
    }
  }

 private:
  bool attempt() {
    Recording recording(entry_);
    if (!collect(recording)) return run_eagerly(entry_, stack_, kNoSuchConstants), true;
    if (recording.has_foreign() || !recording.device()) return admit_foreign(recording.device()), false;
    const Signature* signature = nullptr;
    bool is_recorded = false, may_end;
    LocationId where;
    {
      Recorder recorder(*recording.device());
      where = recorder.location();
      may_end = !is_announced_ && recorder.may_end();
      if (!may_end) {
        signature = recording.find_signature(recorder);
        is_recorded = signature && targets_fit(*signature) && !widens(*signature);
        if (is_recorded) emit(recording, recorder, *signature);
      }
    }
    if (may_end) return is_announced_ = true, recording.device()->before_op({entry_.id, where}), false;
    if (is_recorded) {
      finish();
      recording.device()->end_op();
      return true;
    }
    if (signature) return widens(*signature) ? (run_eagerly(entry_, stack_, kNoSuchConstants), true) : adapt(*signature);
    const bool needs_values = recording.needs_values();
    std::optional<Signature> inferred = needs_values ? std::nullopt : infer(entry_, args_, asks_kernel_);
    if (inferred) return recording.remember(std::move(*inferred)), false;
    run_eagerly(entry_, stack_, "what it gives is not known without its values");
    if (!needs_values) recording.remember_needs_values();
    return true;
  }

  // Whether all of the call can be part of a program.
  bool collect(Recording& recording) {
    for (size_t i = 0; i < entry_.args.size(); ++i) {
      const c10::IValue& value = args_[i];
      switch (entry_.args[i].kind) {
        case ArgKind::kTensor:
          if (!collect_tensor(recording, tensor_impl(value))) return false;
          break;
        case ArgKind::kTensorList: collect_list(recording, value); break;
        case ArgKind::kNumber:
          if (!collect_number(recording, entry_.args[i], to_number(value))) return false;
          break;
        case ArgKind::kPlacement:
          if (value.isDevice() && !recording.device()) recording.set_device(lazy_device(value.toDevice()));
          [[fallthrough]];
        case ArgKind::kConstant:
          if (value.isComplexDouble() || (value.isUnsigned() && !value.isInt())) return false;
          recording.add_constant(value);
      }
    }
    for (const at::Tensor& out : targets_) {
      TORCH_CHECK(is_lazy(out), "Expected out tensor to have device ", kDeviceName, ", but got ", out.device(), " instead");
      recording.set_device(lazy_device(out));
    }
    return true;
  }

  bool collect_tensor(Recording& recording, const c10::TensorImpl* tensor) {
    if (!tensor || tensor->dtype() != caffe2::TypeMeta::Make<uint64_t>() || !is_number_tensor(tensor)) {
      return recording.add_tensor(tensor), true;
    }
    return collect_large(recording, to_number(*static_cast<const uint64_t*>(tensor->unsafe_storage().data())), true);
  }

  bool collect_number(Recording& recording, const Arg& arg, const Number& number) {
    if (is_small(number) || arg.is_default(number)) [[likely]]
      return recording.add_number(arg, number), true;
    const auto holds = [&](c10::ScalarType dtype) { return fits(number, dtype); };
    if (std::ranges::all_of(operand_dtypes(), holds)) return recording.add_number(arg, number), true;
    return collect_large(recording, number, false);
  }

  bool collect_large(Recording& recording, const Number& number, bool is_tensor) {
    const std::optional<Number> recorded = as_recorded(number, operand_dtypes());
    if (!recorded) return false;
    asks_kernel_ = true;
    wraps_number_ |= number.dtype == DType::kU64 && recorded->dtype == DType::kI64;
    return recording.add_exact_number(number, *recorded, is_tensor), true;
  }

  // The dtypes of the lazy tensors among the arguments.
  c10::SmallVector<c10::ScalarType, 4> operand_dtypes() const {
    c10::SmallVector<c10::ScalarType, 4> dtypes;
    const auto add = [&](const at::Tensor& tensor) {
      if (tensor.defined() && is_lazy(tensor)) dtypes.push_back(tensor.scalar_type());
    };
    for (size_t i = 0; i < entry_.args.size(); ++i) {
      if (args_[i].isTensor()) add(args_[i].toTensor());
      if (args_[i].isTensorList()) std::ranges::for_each(args_[i].toTensorVector(), add);
    }
    return dtypes;
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
      args_[i] = map_tensors(args_[i], [&](const at::Tensor& tensor) { return admit(*device, i, tensor); });
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
    if (signature.outputs.empty()) return;
    const ValueId node = recording.emit(recorder, signature);
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      const auto value = static_cast<ValueId>(node + i);
      const TypeId type = signature.outputs[i];
      if (i < targets_.size()) {
        const at::Tensor& to = targets_[i];
        write(recorder, to.unsafeGetTensorImpl(), emit_cast(recorder, value, to_dtype(to.scalar_type())));
      } else {
        fresh_.push_back(type == kNoType ? at::Tensor() : recording.bind_fresh(recorder, value, type));
      }
    }
  }

  // Puts the schema's returns on the stack: arguments that were written, fresh tensors, or one list of all fresh ones.
  void finish() {
    c10::SmallVector<c10::IValue, 3> results;
    size_t next = 0;
    for (size_t i = 0; i < entry_.returns.size(); ++i) {
      if (entry_.returns[i] != OpEntry::kFresh) {
        results.push_back(args_[entry_.returns[i]]);
      } else if (entry_.called.schema().returns()[i].type()->kind() == c10::TypeKind::ListType) {
        results.emplace_back(std::vector<at::Tensor>(fresh_.begin(), fresh_.end()));
      } else {
        results.emplace_back(std::move(fresh_[next++]));
      }
    }
    torch::jit::drop(stack_, entry_.args.size() + entry_.out_count);
    for (c10::IValue& result : results) stack_.push_back(std::move(result));
  }

  // ---- ops that write their arguments

  // Whether the results can be written as they are. Where a kernel of PyTorch would cast them on the way, so does recording.
  bool targets_fit(const Signature& signature) const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const Type& type = type_of(signature.outputs[i]);
      if (!std::ranges::equal(targets_[i].sizes(), type.sizes)) return false;
      if (to_dtype(targets_[i].scalar_type()) != type.dtype && !casts_to(targets_[i], type)) return false;
    }
    return entry_.kind == OpKind::kWriting || dry_run_done_ || !overlaps();
  }

  bool casts_to(const at::Tensor& to, const Type& type) const {
    return entry_.structured && (dry_run_done_ || entry_.kind == OpKind::kInPlace) &&
           c10::canCast(to_scalar_type(type.dtype), to.scalar_type());
  }

  // Whether a number that is recorded as its bits would be computed with as what it is.
  bool widens(const Signature& signature) const {
    return wraps_number_ && std::ranges::any_of(signature.outputs, [](TypeId type) {
             return type != kNoType && !c10::isIntegralType(to_scalar_type(type_of(type).dtype), true);
           });
  }

  // Whether it is for PyTorch to say that this memory may be written.
  bool overlaps() const {
    for (const at::Tensor& to : targets_) {
      if ((entry_.kind == OpKind::kOut || entry_.structured) && at::has_internal_overlap(to) == at::MemOverlap::Yes) return true;
      if (entry_.kind != OpKind::kOut) continue;
      for (size_t i = 0; i < entry_.args.size(); ++i) {
        if (args_[i].isTensor() && args_[i].toTensor().defined() && disturbs(args_[i].toTensor(), to)) return true;
        if (args_[i].isTensorList()) {
          for (const at::Tensor& tensor : args_[i].toTensorVector()) {
            if (disturbs(tensor, to)) return true;
          }
        }
      }
    }
    return false;
  }

  // Whether to write `to` may change what is still to be read of an operand. Element by element it does not where both are the
  // same.
  bool disturbs(const at::Tensor& operand, const at::Tensor& to) const {
    if (!operand.is_alias_of(to)) return false;
    return !entry_.called.hasTag(at::Tag::pointwise) || at::get_overlap_status(operand, to) != at::MemOverlapStatus::Full;
  }

  // The targets are not simply what the op gives. PyTorch says on dummy inputs what it makes of them. Kernels that do not cast
  // their results on the way out may compute in the output's dtype: then the op is recorded as it was called.
  bool adapt(const Signature& signature) {
    if (entry_.kind == OpKind::kWriting) return resize_targets(dry_run(entry_, args_, signature)), false;
    if (dry_run_done_ || computes_in_other_dtype(signature)) return record(OpEntry::writing(entry_.called), stack_), true;
    const std::vector<TypeId> geometries = dry_run(entry_, args_, signature);
    if (entry_.kind == OpKind::kInPlace) return resize_and_write(geometries), true;
    dry_run_done_ = true;
    return resize_targets(geometries), false;
  }

  // The op reads what it then resizes.
  void resize_and_write(const std::vector<TypeId>& geometries) {
    at::Tensor self = targets_[0];
    record(OpEntry::of(*entry_.recorded), stack_);
    const at::Tensor result = torch::jit::pop(stack_).toTensor();
    resize_targets(geometries);
    stack_.emplace_back(self.copy_(result));
  }

  bool computes_in_other_dtype(const Signature& signature) const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const bool casts = entry_.structured && !has_dtype_argument();
      if (!casts && to_dtype(targets_[i].scalar_type()) != type_of(signature.outputs[i]).dtype) return true;
    }
    return false;
  }

  bool has_dtype_argument() const {
    return std::ranges::any_of(entry_.args, [](const Arg& arg) { return arg.is_dtype; });
  }

  void resize_targets(const std::vector<TypeId>& geometries) const {
    for (size_t i = 0; i < targets_.size(); ++i) {
      const Type& type = type_of(geometries[i]);
      if (std::ranges::equal(targets_[i].sizes(), type.sizes)) continue;
      if (at::native::resize_output(targets_[i], type.sizes)) {
        targets_[i].unsafeGetTensorImpl()->set_sizes_and_strides(type.sizes, type.strides);
      }
    }
  }

  OpEntry& entry_;
  torch::jit::Stack& stack_;
  c10::IValue* args_;
  c10::SmallVector<at::Tensor, 2> targets_;  // what the op writes
  c10::SmallVector<at::Tensor, 2> fresh_;    // what else it returns
  bool dry_run_done_ = false;                // PyTorch has accepted the targets
  bool asks_kernel_ = false;                 // a number may be more than a dtype holds
  bool wraps_number_ = false;                // one is recorded as its bits
  bool is_announced_ = false;                // the device knows which op comes
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
