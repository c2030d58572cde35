// x[i]: recorded where the indices are integers. A mask decides the result's size by its values: the CPU runs it at once.
#include <torch/library.h>

#include <algorithm>

#include "core/torch/fallback.h"
#include "core/torch/record.h"

namespace ltc {
namespace {

bool is_mask(const c10::IValue& index) {
  if (!index.isTensor() || !index.toTensor().defined()) return false;
  return index.toTensor().scalar_type() == at::kBool || index.toTensor().scalar_type() == at::kByte;
}

void index(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  OpEntry& entry = OpEntry::of(op);
  const size_t indices = stack->size() - entry.args.size() - entry.out_count + 1;
  if (std::ranges::any_of((*stack)[indices].toListRef(), is_mask))
    return run_eagerly(entry, *stack, "a mask decides the size of its result");
  record(entry, *stack);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("index.Tensor", torch::CppFunction::makeFromBoxedFunction<&index>());
  m.impl("index.Tensor_out", torch::CppFunction::makeFromBoxedFunction<&index>());
}

}  // namespace
}  // namespace ltc
