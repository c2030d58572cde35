// Products of F32 matrices by libtorch's oneDNN, in the calling thread.
//
// libtorch exports the entry, but declares it in no header that it ships. Its public operators are no way around that:
// mkldnn::_linear_pointwise has the same kernels and bits, but makes a result of its own, so that each part of a product would be
// copied; it copies a left operand that lies by columns; and it computes without a fast kernel where the right operand is a part
// of a matrix by rows.
#pragma once
#include <ATen/core/Tensor.h>

namespace ltc::torchscript {

// Whether this libtorch has the entry for this processor, and trial products were right and wrote nothing beyond their results.
bool has_onednn();

// out = a b. Wants has_onednn(); rows of `out` may lie apart.
void multiply_by_onednn(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

}  // namespace ltc::torchscript
