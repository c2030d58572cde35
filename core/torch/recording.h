// One call on its way into the trace: its operands, the key of its signature, and the node. Shared by the boxed recorder, which
// reads arguments from a stack, and by the typed kernels of hot ops.
#pragma once

#include "core/torch/geometry.h"
#include "core/torch/op_entry.h"
#include "core/torch/signature_memo.h"

namespace ltc {

class Recording {
 public:
  explicit Recording(const OpEntry& entry) : entry_(entry) { key_.add_op(entry.id); }

  // Arguments, in the order of the schema. What is added is borrowed until the recording is gone.
  void add_tensor(const c10::TensorImpl* tensor);                 // null or undefined: not given
  void add_view(const c10::TensorImpl* tensor, TypeId geometry);  // a lazy tensor through another geometry; see read_as()
  void add_number(const Arg& arg, const c10::IValue& value);
  void add_number_tensor(const c10::IValue& number);  // as PyTorch puts a Python number into a tensor; an int or a double
  void add_list(size_t size) { key_.add_list(size); }
  void add_absent() { key_.add_absent(); }
  void add_constant(const c10::IValue& value) { key_.add_constant(value); }
  void set_device(LazyDevice& device);  // throws if another device was met before

  LazyDevice* device() const { return device_; }     // null: none of the arguments says which
  bool has_foreign() const { return has_foreign_; }  // a tensor was neither lazy nor a Python number

  // Under the device's lock: null if this call was never seen.
  const Signature* find_signature(const Recorder& recorder);
  void remember(Signature signature);

  // The node, behind what its operands need, in their order; further results follow it.
  ValueId emit(Recorder& recorder, const Signature& signature) const;
  // The same, and the first operand, a tensor, now holds the result; false where that takes more than to bind it.
  bool rewrite_first(Recorder& recorder, const Signature& signature) const;
  // A new tensor that holds a result.
  at::Tensor bind_fresh(Recorder& recorder, ValueId value, TypeId type) const;

 private:
  // A lazy tensor, a view of one, a number (as tensor or not), or nothing.
  struct Operand {
    const c10::TensorImpl* tensor = nullptr;
    LazyStorage* storage = nullptr;  // of a lazy tensor; a tensor without one is a number
    const c10::IValue* number = nullptr;
    TypeId view = kNoType;  // the geometry of a view of the tensor
    size_t key_word = 0;    // where its type stands in the key
    bool whole = false;     // the tensor is its storage's value
  };
  static ValueId emit_operand(Recorder& recorder, const Operand& operand);

  const OpEntry& entry_;
  LazyDevice* device_ = nullptr;
  bool has_foreign_ = false;
  CallKey key_;
  c10::SmallVector<Operand, 6> operands_;
};

// A Python number that PyTorch has put into a CPU tensor.
inline bool is_number_tensor(const c10::TensorImpl* tensor) {
  return tensor->is_wrapped_number() && tensor->device_type() == at::kCPU;
}

}  // namespace ltc
