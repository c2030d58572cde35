// Determinants of row-major matrices only. PyTorch factorizes the transpose of a matrix that is row-major, and the gradient asks
// the strides of the matrix which of the two it was. A plugin knows no strides, so all matrices are given to it in that one form.
#include <ATen/Functions.h>
#include <torch/library.h>

namespace ltc {
namespace {

at::Tensor linalg_det(const at::Tensor& matrix) { return std::get<0>(at::_linalg_det(matrix.contiguous())); }

std::tuple<at::Tensor, at::Tensor> linalg_slogdet(const at::Tensor& matrix) {
  auto [sign, logarithm, factors, pivots] = at::_linalg_slogdet(matrix.contiguous());
  return {std::move(sign), std::move(logarithm)};
}

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("linalg_det", linalg_det);
  m.impl("linalg_slogdet", linalg_slogdet);
}

}  // namespace
}  // namespace ltc
