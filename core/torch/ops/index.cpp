// x[i]: recorded where the indices are integers. A mask decides the result's size by its values: the CPU runs it at once.
// Copies of x with a piece replaced keep the gaps between its elements, as on the CPU.
#include <torch/library.h>

#include <algorithm>

#include "core/torch/dispatch/boxed_kernel.h"
#include "core/torch/dispatch/fallback.h"

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

// A recorded copy has no gaps. PyTorch's composite kernel makes a copy that has them, and writes into a view of it.
void scatter_view(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  OpEntry& entry = OpEntry::of(op);
  const at::Tensor& self = (*stack)[stack->size() - entry.args.size()].toTensor();
  if (self.is_non_overlapping_and_dense()) return record(entry, *stack);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse3), stack);  // a key without kernels of its own
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : {"slice_scatter", "select_scatter", "diagonal_scatter"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&scatter_view>());
  }
  m.impl("index.Tensor", torch::CppFunction::makeFromBoxedFunction<&index>());
  m.impl("index.Tensor_out", torch::CppFunction::makeFromBoxedFunction<&index>());
}

}  // namespace
}  // namespace ltc
