#include "core/torch/tensor/sparse.h"

#include <ATen/ops/_sparse_coo_tensor_with_dims_and_tensors.h>

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

}  // namespace ltc
