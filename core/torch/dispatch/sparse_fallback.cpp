#include "core/torch/dispatch/sparse_fallback.h"

#include <torch/library.h>

#include "core/torch/dispatch/fallback.h"
#include "core/torch/dispatch/map_tensors.h"
#include "core/torch/tensor/sparse.h"

namespace ltc {
namespace {

torch::jit::Stack arguments_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  return torch::jit::last(stack, op.schema().arguments().size()).vec();
}

// Numbers may be anywhere, as in any op.
void check_places(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  for_each_tensor(arguments_of(op, stack), [&](const at::Tensor& tensor) {
    const bool fits = is_lazy(tensor) || (!is_sparse(tensor) && tensor.dim() == 0);
    TORCH_CHECK(fits, "Expected all tensors to be on the same device, but ", op.operator_name(), " got tensors on ", kDeviceName,
                " and on ", tensor.device(), "; move them with .to(\"", kDeviceName, "\")");
  });
}

void check_kernel(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::optional<c10::Layout> refused;
  bool has_kernel = false;
  for_each_tensor(arguments_of(op, stack), [&](const at::Tensor& tensor) {
    if (!is_sparse(tensor)) return;
    refused = tensor.layout();
    has_kernel |= op.hasKernelForDispatchKey(is_coo(tensor) ? c10::DispatchKey::SparseCPU : c10::DispatchKey::SparseCsrCPU);
  });
  TORCH_CHECK_NOT_IMPLEMENTED(has_kernel || !refused, op.operator_name(), " takes no tensor of layout ", *refused, ", on device ",
                              kDeviceName, " or on the CPU; hand it a dense one: tensor.to_dense()");
}

}  // namespace

void run_sparse_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check_places(op, *stack);
  check_kernel(op, *stack);
  run_eagerly(OpEntry::of(op), *stack, "its operands are sparse");
}

}  // namespace ltc
