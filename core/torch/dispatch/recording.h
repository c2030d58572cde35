// One call on its way into the trace: its operands, the key of its signature, and the node. Shared by the boxed recorder, which
// reads arguments from a stack, and by the typed kernels of hot ops.
#pragma once

#include "core/torch/dispatch/op_entry.h"
#include "core/torch/dispatch/signature_memo.h"
#include "core/torch/tensor/geometry.h"

namespace ltc {

class Recording {
 public:
  explicit Recording(const OpEntry& entry) : entry_(entry) { key_.add_op(entry.id); }

  // Arguments, in the order of the schema. Tensors are borrowed until the recording is gone.
  void add_tensor(const c10::TensorImpl* tensor) {  // null or undefined: not given
    if (!tensor || !tensor->has_storage() || tensor->device_type() != kLtc) [[unlikely]]
      return add_no_lazy_tensor(tensor);
    LazyStorage& storage = lazy_storage(tensor);
    Operand& operand = operands_.emplace_back(Operand::kTensor);
    operand.key_word = key_.add_tensor();
    operand.lazy = {tensor, &storage};
    set_device(storage.device());
  }
  void add_view(const c10::TensorImpl* tensor, TypeId geometry) {  // a lazy tensor through another geometry; see read_as()
    key_.set_type(key_.add_tensor(), geometry);
    LazyStorage& storage = lazy_storage(tensor);
    operands_.push_back({.kind = Operand::kView, .type = geometry, .lazy = {tensor, &storage}});
    set_device(storage.device());
  }
  void add_number(const Arg& arg, const Number& number) {
    if (arg.is_default(number)) return key_.add_absent();
    add_operand(number, kPlain);
  }
  void add_number_tensor(const Number& number) { add_operand(number, 0); }  // as PyTorch puts a Python number into a tensor
  // One whose value decides whether the call is an error, and which the trace holds as `recorded`.
  void add_exact_number(const Number& number, const Number& recorded, bool is_tensor) {
    key_.add_exact_number((is_tensor ? 0 : kPlain) + static_cast<uint64_t>(number.dtype), number.value);
    operands_.push_back({.kind = Operand::kNumber, .dtype = recorded.dtype, .number = recorded.value});
  }
  void add_list(size_t size) { key_.add_list(size); }
  void add_absent() { key_.add_absent(); }
  void add_constant(const c10::IValue& value) { key_.add_constant(value); }
  void set_device(LazyDevice& device) {  // throws if another device was met before
    if (device_ == &device) return;
    if (device_) [[unlikely]]
      refuse_second_device(device);
    device_ = &device;
  }

  LazyDevice* device() const { return device_; }  // null: none of the arguments says which
  // A tensor was neither lazy nor a Python number, or a number is not of a dtype that traces have.
  bool has_foreign() const { return has_foreign_; }

  // Under the device's lock: null if this call was never seen.
  const Signature* find_signature(const Recorder& recorder) {
    for (Operand& operand : operands_) {
      if (operand.kind != Operand::kTensor) continue;
      operand.type = whole_type(recorder, operand.lazy.tensor, *operand.lazy.storage);
      if (operand.type == kNoType) operand.kind = Operand::kView, operand.type = geometry_of(operand.lazy.tensor);
      key_.set_type(operand.key_word, operand.type);
    }
    return SignatureMemo::of(*device_).find(key_);
  }
  void remember(Signature signature);
  bool needs_values() const;  // whether this call was seen to have a signature only with its values
  void remember_needs_values() const;

  // The node, behind what its operands need, in their order; further results follow it.
  ValueId emit(Recorder& recorder, const Signature& signature) const;
  // The same, and the first operand, a tensor, now holds the result; false where that takes more than to bind it.
  bool rewrite_first(Recorder& recorder, const Signature& signature) const;
  // A new tensor that holds a result.
  at::Tensor bind_fresh(Recorder& recorder, ValueId value, TypeId type) const;

 private:
  static constexpr uint64_t kPlain = 256;  // in the key: numbers apart from numbers in tensors

  struct Operand {
    enum Kind : uint8_t {
      kNone,
      kNumber,  // plain, or in a tensor
      kTensor,  // a lazy one; once its type is known, one that is all that its storage holds
      kView,    // a lazy tensor of this geometry, or read through it
    } kind = kNone;
    DType dtype = DType::kNone;  // of a number
    TypeId type = kNoType;       // of a tensor
    uint32_t key_word = 0;       // where its type stands in the key
    union {
      struct {
        const c10::TensorImpl* tensor;
        LazyStorage* storage;
      } lazy;
      Scalar number;
    };
  };
  void add_no_lazy_tensor(const c10::TensorImpl* tensor);
  void add_operand(const Number& number, uint64_t apart) {
    key_.add_number(apart + static_cast<uint64_t>(number.dtype));
    Operand& operand = operands_.emplace_back(Operand::kNumber);
    operand.dtype = number.dtype;
    operand.number = number.value;
    if (number.dtype == DType::kU64) [[unlikely]]
      has_foreign_ = true;
  }
  [[noreturn]] void refuse_second_device(const LazyDevice& device) const;
  static ValueId emit_operand(Recorder& recorder, const Operand& operand);

  const OpEntry& entry_;
  LazyDevice* device_ = nullptr;
  bool has_foreign_ = false;
  CallKey key_;
  c10::SmallVector<Operand, 4> operands_;
};

}  // namespace ltc
