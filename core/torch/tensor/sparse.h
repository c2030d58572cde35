// Sparse tensors of the device: PyTorch's own, whose indices and values are dense tensors of the device.
#pragma once

#include <ATen/SparseCsrTensorImpl.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/SparseTensorImpl.h>

#include "core/torch/tensor/tensor.h"

namespace ltc {

// COO, or one of the compressed layouts.
inline bool is_sparse(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_sparse() || at::sparse_csr::is_sparse_compressed(tensor));
}
inline bool is_coo(const at::Tensor& tensor) { return tensor.defined() && tensor.layout() == c10::kSparse; }
inline bool is_csr(const at::Tensor& tensor) { return tensor.defined() && tensor.layout() == c10::kSparseCsr; }
inline bool is_csc(const at::Tensor& tensor) { return tensor.defined() && tensor.layout() == c10::kSparseCsc; }

inline at::SparseTensorImpl& coo_impl(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}
inline at::SparseCsrTensorImpl& compressed_impl(const at::Tensor& tensor) {
  return *static_cast<at::SparseCsrTensorImpl*>(tensor.unsafeGetTensorImpl());
}

// The tensors that a sparse one consists of.
struct SparseParts {
  at::Tensor indices;  // of COO: a row for each sparse dim; else the compressed ones
  at::Tensor plain;    // undefined for COO
  at::Tensor values;
};
SparseParts parts_of(const at::Tensor& sparse);

// A sparse tensor of the layout and sizes of `like` that consists of these parts. It lies where the values do. No autograd.
at::Tensor sparse_like(const at::Tensor& like, const SparseParts& parts);

// The same, of change(part) for each part of `sparse`.
template <typename Change>
at::Tensor map_parts(const at::Tensor& sparse, const Change& change) {
  SparseParts parts = parts_of(sparse);
  parts.indices = change(parts.indices);
  if (parts.plain.defined()) parts.plain = change(parts.plain);
  parts.values = change(parts.values);
  return sparse_like(sparse, parts);
}

// `sparse` becomes what `from` is, which has its layout and lies where it does.
void assign_sparse(const at::Tensor& sparse, const at::Tensor& from);

}  // namespace ltc
