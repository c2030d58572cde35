#include "core/torch/sparse.h"

#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <algorithm>

#include "core/torch/fallback.h"
#include "core/torch/map_tensors.h"

namespace ltc {

SparseParts parts_of(const at::Tensor& sparse) {
  if (is_coo(sparse)) return {coo_impl(sparse).indices(), {}, coo_impl(sparse).values()};
  const at::SparseCsrTensorImpl& impl = compressed_impl(sparse);
  return {impl.compressed_indices(), impl.plain_indices(), impl.values()};
}

at::Tensor sparse_like(const at::Tensor& like, const SparseParts& parts) {
  if (is_coo(like)) {
    const at::SparseTensorImpl& impl = coo_impl(like);
    return at::_sparse_coo_tensor_with_dims_and_tensors(impl.sparse_dim(), impl.dense_dim(), like.sizes(), parts.indices,
                                                        parts.values, parts.values.options().layout(c10::kSparse),
                                                        impl.coalesced());
  }
  const auto key = is_lazy(parts.values) ? c10::DispatchKey::SparseCsrPrivateUse1 : c10::DispatchKey::SparseCsrCPU;
  const at::Tensor result = at::detail::make_tensor<at::SparseCsrTensorImpl>(c10::DispatchKeySet(key), parts.values.device(),
                                                                             like.layout(), parts.values.dtype());
  compressed_impl(result).set_member_tensors(parts.indices, parts.plain, parts.values, like.sizes());
  return result;
}

void assign_sparse(const at::Tensor& sparse, const at::Tensor& from) {
  const SparseParts parts = parts_of(from);
  if (is_coo(sparse)) {
    at::SparseTensorImpl& impl = coo_impl(sparse);
    impl.raw_resize_(coo_impl(from).sparse_dim(), coo_impl(from).dense_dim(), from.sizes());
    impl.set_indices_and_values_unsafe(parts.indices, parts.values);
    impl.set_coalesced(coo_impl(from).coalesced());
  } else {
    compressed_impl(sparse).set_member_tensors(parts.indices, parts.plain, parts.values, from.sizes());
  }
}

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

void run_sparse_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  check_places(op, *stack);
  check_kernel(op, *stack);
  run_eagerly(OpEntry::of(op), *stack, "its operands are sparse");
}

}  // namespace ltc
