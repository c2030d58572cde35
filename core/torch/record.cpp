#include "core/torch/record.h"

#include <ATen/native/Resize.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <unordered_map>

#include "core/torch/device.h"
#include "core/torch/fallback.h"
#include "core/torch/geometry.h"
#include "core/torch/infer.h"
#include "core/torch/transfer.h"

namespace ltc {
namespace {

using Key = c10::SmallVector<uint64_t, 24>;

// Signatures of calls already seen, by op, operand types and constants. One per device, guarded by the device's recorder.
class SignatureMemo {
 public:
  const Signature* find(const Key& key) const {
    const auto [first, last] = by_hash_.equal_range(hash(key));
    for (auto it = first; it != last; ++it) {
      if (it->second.first == key) return &it->second.second;
    }
    return nullptr;
  }
  void insert(const Key& key, Signature signature) { by_hash_.emplace(hash(key), std::pair(key, std::move(signature))); }

  static SignatureMemo& of(const LazyDevice& device) {
    static auto* memos = new std::array<SignatureMemo, kMaxDevices>();
    return (*memos)[device.ordinal()];
  }

 private:
  static uint64_t hash(const Key& key) { return hash_bytes(0, key.data(), key.size() * sizeof(uint64_t)); }
  std::unordered_multimap<uint64_t, std::pair<Key, Signature>> by_hash_;  // nodes never move: signatures stay where they are
};

// Words of a key that say what kind of thing follows; operand types are 32 bits.
enum Tag : uint64_t { kTagType = 1ull << 32, kTagNumber = 2ull << 32, kTagAbsent = 3ull << 32, kTagList = 4ull << 32, kTagConstant = 5ull << 32 };

// An operand of the node that is about to be recorded.
struct Operand {
  const c10::TensorImpl* tensor = nullptr;  // else a number, or absent
  const c10::IValue* number = nullptr;
  bool whole = false;  // the tensor is its storage's value
};

bool is_number_tensor(const c10::TensorImpl* tensor) { return tensor->is_wrapped_number() && tensor->device_type() == at::kCPU; }

c10::Scalar number_of(const c10::TensorImpl* tensor) {
  const void* data = tensor->unsafe_storage().data();
  switch (c10::typeMetaToScalarType(tensor->dtype())) {
    case c10::ScalarType::Double: return *static_cast<const double*>(data);
    case c10::ScalarType::Long: return *static_cast<const int64_t*>(data);
    case c10::ScalarType::Bool: return *static_cast<const bool*>(data);
    case c10::ScalarType::ComplexDouble: return *static_cast<const c10::complex<double>*>(data);
    default: TORCH_CHECK(false, "a Python number of dtype ", tensor->dtype().name());
  }
}

[[noreturn]] void refuse_cpu_tensor(const OpEntry& entry, const Arg& arg, const at::Tensor& tensor) {
  TORCH_CHECK(false, "Input tensor is not a lazy tensor: ", tensor.toString(), " of sizes ", tensor.sizes(), ", argument '", arg.name,
              "' of ", entry.called.operator_name(), "; move it with .to(\"", kDeviceName, "\")");
}

// One call of an op. Built, run, gone.
class Call {
 public:
  Call(OpEntry& entry, torch::jit::Stack& stack)
      : entry_(entry), stack_(stack), args_(stack.data() + (stack.size() - entry.args.size() - entry.out_count)) {}

  void run() {
    find_device();
    const Signature* signature = nullptr;
    bool is_long = false;
    for (;;) {
      {
        Recorder recorder(*device_);
        describe(recorder);
        signature = SignatureMemo::of(*device_).find(key_);
        if (signature && entry_.kind == OpKind::kFunctional) {
          emit(recorder, *signature);
          is_long = recorder.is_long();
          break;
        }
      }
      if (signature) {  // outputs exist already: fit them, which records too, then record the op
        for (size_t i = 0; i < signature->outputs.size(); ++i) prepare_target(target(i), signature->outputs[i]);
        Recorder recorder(*device_);
        emit(recorder, *signature);
        is_long = recorder.is_long();
        break;
      }
      std::optional<Signature> inferred = infer(entry_, args_);
      if (!inferred) return run_eagerly(entry_, stack_);
      Recorder recorder(*device_);
      SignatureMemo::of(*device_).insert(key_, std::move(*inferred));
    }
    finish();
    if (is_long) device_->sync(metrics::kTraceLimit);
  }

 private:
  // ---- operands

  // The device of the first lazy tensor, else of the device argument. Brings numbers in CPU tensors over; refuses strangers.
  void find_device() {
    const size_t count = entry_.args.size() + entry_.out_count;
    for (size_t i = 0; i < count && !device_; ++i) {
      if (args_[i].isTensor()) {
        const at::Tensor& tensor = args_[i].toTensor();
        if (tensor.defined() && is_lazy(tensor)) device_ = &lazy_device(tensor);
      } else if (args_[i].isTensorList() || args_[i].isOptionalTensorList()) {
        for_each_in_list(args_[i], [&](const at::Tensor& tensor) {
          if (!device_ && tensor.defined() && is_lazy(tensor)) device_ = &lazy_device(tensor);
        });
      } else if (args_[i].isDevice()) {
        device_ = &lazy_device(args_[i].toDevice());
      }
    }
    TORCH_CHECK(device_, entry_.called.operator_name(), " was called for device ", kDeviceName, " without a tensor on it");
    for (size_t i = 0; i < count; ++i) admit(i);
  }

  template <typename Visit>
  static void for_each_in_list(const c10::IValue& list, Visit visit) {
    for (const c10::IValue& element : list.toListRef()) {
      if (element.isTensor()) visit(element.toTensor());
    }
  }

  bool is_admissible(size_t i, const at::Tensor& tensor) const {
    if (!tensor.defined()) return true;
    if (is_lazy(tensor)) {
      const LazyDevice& device = lazy_device(tensor);
      TORCH_CHECK(&device == device_, "Expected all tensors to be on the same device, but found at least two devices, ", kDeviceName, ":",
                  device_->ordinal(), " and ", kDeviceName, ":", device.ordinal(), "!");
      return true;
    }
    if (i >= entry_.args.size()) {
      TORCH_CHECK(false, "Expected out tensor to have device ", kDeviceName, ":", device_->ordinal(), ", but got ", tensor.device(), " instead");
    }
    if (is_number_tensor(tensor.unsafeGetTensorImpl()) && entry_.args[i].kind == ArgKind::kTensor) return true;
    const bool may_stay = tensor.dim() == 0 || (entry_.flags & kCpuIndices && entry_.args[i].kind == ArgKind::kTensorList);
    if (tensor.device().type() != at::kCPU || !may_stay) {
      refuse_cpu_tensor(entry_, entry_.args[i], tensor);
    }
    return false;
  }

  // CPU tensors that PyTorch lets an op of a device read (numbers, indices) are sent to the device.
  void admit(size_t i) {
    c10::IValue& value = args_[i];
    if (value.isTensor()) {
      if (!is_admissible(i, value.toTensor())) value = to_lazy(*device_, value.toTensor());
    } else if (value.isTensorList()) {
      auto tensors = value.toTensorVector();
      bool changed = false;
      for (at::Tensor& tensor : tensors) {
        if (!is_admissible(i, tensor)) tensor = to_lazy(*device_, tensor), changed = true;
      }
      if (changed) value = std::move(tensors);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors = value.toOptionalTensorList();
      for (size_t k = 0; k < tensors.size(); ++k) {
        const std::optional<at::Tensor> tensor = tensors.get(k);
        if (tensor && !is_admissible(i, *tensor)) tensors.set(k, to_lazy(*device_, *tensor));
      }
    }
  }

  // ---- the key of the memo, and the operands in the order of the schema

  void describe(const Recorder& recorder) {
    key_.clear();
    operands_.clear();
    key_.push_back(entry_.id);
    for (size_t i = 0; i < entry_.args.size(); ++i) {
      const c10::IValue& value = args_[i];
      switch (entry_.args[i].kind) {
        case ArgKind::kTensor: describe_tensor(recorder, value.isTensor() ? value.toTensor().unsafeGetTensorImpl() : nullptr); break;
        case ArgKind::kTensorList: describe_list(recorder, value); break;
        case ArgKind::kNumber: describe_number(entry_.args[i], value); break;
        default: describe_constant(value);
      }
    }
  }

  void describe_tensor(const Recorder& recorder, const c10::TensorImpl* tensor) {
    Operand operand;
    if (!tensor || !tensor->has_storage()) {
      key_.push_back(kTagAbsent);
    } else if (is_number_tensor(tensor)) {
      operand.tensor = tensor;
      key_.push_back(kTagNumber | static_cast<uint64_t>(c10::typeMetaToScalarType(tensor->dtype())));
    } else {
      TypeId type;
      operand.tensor = tensor;
      operand.whole = is_whole(recorder, tensor, type);
      key_.push_back(kTagType | (operand.whole ? type : geometry_of(tensor)));
    }
    operands_.push_back(operand);
  }

  void describe_list(const Recorder& recorder, const c10::IValue& value) {
    if (value.isNone()) return key_.push_back(kTagAbsent);
    const auto elements = value.toListRef();
    key_.push_back(kTagList | elements.size());
    for (const c10::IValue& element : elements) {
      describe_tensor(recorder, element.isTensor() ? element.toTensor().unsafeGetTensorImpl() : nullptr);
    }
  }

  void describe_number(const Arg& arg, const c10::IValue& value) {
    if (is_default_number(arg, value)) return key_.push_back(kTagAbsent);
    const uint64_t kind = value.isInt() ? 1 : value.isDouble() ? 2 : value.isBool() ? 3 : 4;
    key_.push_back(kTagNumber | kind << 8);
    operands_.push_back({nullptr, &value, false});
  }

  void describe_constant(const c10::IValue& value) {
    if (value.isNone()) {
      key_.push_back(kTagAbsent);
    } else if (value.isInt()) {
      key_.push_back(kTagConstant), key_.push_back(static_cast<uint64_t>(value.toInt()));
    } else if (value.isBool()) {
      key_.push_back(kTagConstant + 1 + value.toBool());
    } else if (value.isDouble()) {
      key_.push_back(kTagConstant + 3), key_.push_back(std::bit_cast<uint64_t>(value.toDouble()));
    } else if (value.isDevice()) {
      key_.push_back(kTagConstant + 4);
    } else if (value.isString()) {
      const std::string& text = value.toStringRef();
      key_.push_back(kTagConstant + 5), key_.push_back(text.size());
      for (size_t i = 0; i < text.size(); i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
        key_.push_back(word);
      }
    } else {
      const auto elements = value.toListRef();
      key_.push_back(kTagList | elements.size());
      for (const c10::IValue& element : elements) describe_constant(element);
    }
  }

  // ---- the node

  void emit(Recorder& recorder, const Signature& signature) {
    c10::SmallVector<ValueId, 8> inputs;
    for (const Operand& operand : operands_) inputs.push_back(emit_operand(recorder, operand));
    const auto& types = signature.outputs;
    const ValueId node = recorder.node(entry_.id, types[0], signature.attrs, {inputs.data(), inputs.size()});
    for (size_t i = 1; i < types.size(); ++i) recorder.result(node, static_cast<uint32_t>(i), types[i]);
    for (size_t i = 0; i < types.size(); ++i) {
      const auto value = static_cast<ValueId>(node + i);
      entry_.kind == OpKind::kFunctional ? bind_fresh(recorder, value, types[i]) : bind_target(recorder, value, target(i));
    }
  }

  ValueId emit_operand(Recorder& recorder, const Operand& operand) {
    if (operand.whole) return recorder.read(lazy_storage(operand.tensor));
    if (operand.number) return emit_number(recorder, operand.number->toScalar());
    if (!operand.tensor) return kNone;
    return is_number_tensor(operand.tensor) ? emit_number(recorder, number_of(operand.tensor)) : read(recorder, operand.tensor);
  }

  void bind_fresh(Recorder& recorder, ValueId value, TypeId type) {
    if (type == kNoType) {
      results_.emplace_back();
      return;
    }
    const at::Tensor& tensor = results_.emplace_back(new_tensor(*device_, type));
    recorder.bind(lazy_storage(tensor.unsafeGetTensorImpl()), value, type);
  }

  void bind_target(Recorder& recorder, ValueId value, const at::Tensor& to) {
    write(recorder, to.unsafeGetTensorImpl(), emit_cast(recorder, value, to_dtype(to.scalar_type())));
  }

  // ---- ops that write their arguments

  const at::Tensor& target(size_t i) const {
    return entry_.kind == OpKind::kInPlace ? args_[0].toTensor() : args_[entry_.args.size() + i].toTensor();
  }

  void prepare_target(const at::Tensor& to, TypeId id) {
    const Type& type = type_of(id);
    const c10::ScalarType dtype = to_scalar_type(type.dtype);
    TORCH_CHECK(c10::canCast(dtype, to.scalar_type()), "result type ", dtype, " can't be cast to the desired output type ", to.scalar_type());
    if (std::ranges::equal(to.sizes(), type.sizes)) return;
    TORCH_CHECK(entry_.kind == OpKind::kOut, "output with shape ", to.sizes(), " doesn't match the broadcast shape ",
                c10::IntArrayRef(type.sizes));
    at::native::resize_output(to, type.sizes);
  }

  void finish() {
    if (entry_.kind != OpKind::kFunctional) {
      for (size_t i = 0; i < std::max<size_t>(entry_.out_count, 1); ++i) results_.push_back(target(i));
    }
    torch::jit::drop(stack_, entry_.args.size() + entry_.out_count);
    for (at::Tensor& result : results_) stack_.emplace_back(std::move(result));
  }

  OpEntry& entry_;
  torch::jit::Stack& stack_;
  c10::IValue* args_;
  LazyDevice* device_ = nullptr;
  Key key_;
  c10::SmallVector<Operand, 8> operands_;
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
  if (is_inferring()) [[unlikely]] return answer_inference(entry, stack);
  if (entry.kind == OpKind::kEager) return run_eagerly(entry, stack);
  Call(entry, stack).run();
}

void record_any(const c10::OperatorHandle& handle, torch::jit::Stack* stack) { record(OpEntry::of(handle), *stack); }

}  // namespace ltc
