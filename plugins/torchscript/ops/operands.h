// Values in the registers of a run.
#pragma once
#include <ATen/core/ivalue.h>

namespace ltc::torchscript {

// Nothing but this run can see or change the memory of an operand that was moved here. Reference counts replace alias analysis: a
// view, a second reader, and a host buffer are each one more reference.
inline bool is_exclusive(const c10::IValue& operand) {
  if (!operand.isTensor()) return false;
  const at::Tensor& tensor = operand.toTensor();
  return tensor.defined() && tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1 &&
         tensor.is_non_overlapping_and_dense();
}

}  // namespace ltc::torchscript
