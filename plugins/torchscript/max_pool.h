// Max pooling of row-major float32 images, along rows of the result: ATen's kernel goes one element at a time.
#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>

namespace ltc::torchscript {

// As aten::max_pool2d_with_indices, to which everything else goes.
std::tuple<at::Tensor, at::Tensor> max_pool2d_with_indices(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                                                           at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode);

}  // namespace ltc::torchscript
