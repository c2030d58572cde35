// Ops that make sparse tensors, take them apart and convert them.
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <span>

#include "core/torch/dispatch/fallback.h"
#include "core/torch/dispatch/sparse_fallback.h"
#include "core/torch/tensor/sparse.h"

namespace ltc {
namespace {

// ---- ops that PyTorch composes of ops on indices and values, so that its kernels for the CPU serve every device

// Such a kernel makes its tensors on the current device.
std::optional<c10::Device> device_of(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().arguments().size())) {
    if (value.isDevice() && value.toDevice().type() == kLtc) return value.toDevice();
    if (value.isTensor() && value.toTensor().defined() && is_lazy(value.toTensor())) return value.toTensor().device();
  }
  return std::nullopt;
}

template <c10::DispatchKey kKey>
void run_composed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::OptionalDeviceGuard guard(device_of(op, *stack));
  op.redispatchBoxed(c10::DispatchKeySet(kKey), stack);
}

constexpr const char* kComposedOfCoo[] = {"_coalesced_",
                                          "_dimI",
                                          "_dimV",
                                          "_indices",
                                          "_nnz",
                                          "_sparse_coo_tensor_with_dims",
                                          "_sparse_coo_tensor_with_dims_and_tensors",
                                          "_to_dense",
                                          "_values",
                                          "clone",
                                          "copy_",
                                          "copy_sparse_to_sparse_",
                                          "dense_dim",
                                          "empty.memory_format",
                                          "empty_like",
                                          "indices",
                                          "is_coalesced",
                                          "mv",
                                          "resize_as_sparse_",
                                          "sparse_dim",
                                          "sparse_resize_",
                                          "sparse_resize_and_clear_",
                                          "sum",
                                          "values",
                                          "zero_",
                                          "zeros.out"};
constexpr const char* kComposedOfCompressed[] = {"_nnz",
                                                 "_to_dense",
                                                 "ccol_indices",
                                                 "clone",
                                                 "col_indices",
                                                 "copy_",
                                                 "crow_indices",
                                                 "dense_dim",
                                                 "empty.memory_format",
                                                 "empty_like",
                                                 "resize_as_sparse_",
                                                 "row_indices",
                                                 "sparse_dim",
                                                 "sum",
                                                 "values",
                                                 "zero_"};

template <c10::DispatchKey kKey>
void add_composed(torch::Library& m, std::span<const char* const> names) {
  for (const char* name : names) m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_composed<kKey>>());
}

// Their composite kernels throw that a backend is to override them.
void refuse_convolutions(torch::Library& m) {
  for (const char* name : {"convolution_overrideable", "convolution_backward_overrideable"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_host>());
  }
}

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  add_composed<c10::DispatchKey::SparseCPU>(m, kComposedOfCoo);
  refuse_convolutions(m);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  add_composed<c10::DispatchKey::SparseCsrCPU>(m, kComposedOfCompressed);
  refuse_convolutions(m);
}

// ---- dense tensors made sparse

void make_sparse(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  run_eagerly(OpEntry::of(op), *stack, "the size of its result depends on values");
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name :
       {"_to_sparse", "_to_sparse.sparse_dim", "_to_sparse_csr", "_to_sparse_csc", "_to_sparse_bsr", "_to_sparse_bsc"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&make_sparse>());
  }
}

}  // namespace
}  // namespace ltc
