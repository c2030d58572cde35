// Max pooling of float32 images: row-major ones along rows of the result, where ATen's kernel goes one element at a time,
// channels-last ones along the channels.
#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>

namespace ltc::torchscript {

// As aten::max_pool2d_with_indices, to which everything else goes. With `relu`, of what relu makes of the image; without
// `indices`, these are undefined where nobody needs them.
std::tuple<at::Tensor, at::Tensor> max_pool2d_with_indices(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride,
                                                           at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil_mode,
                                                           bool relu, bool indices);

}  // namespace ltc::torchscript
