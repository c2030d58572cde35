// Convolutions of 3 x 3 taps with fewer multiplications than they have (cpu_kernels/winograd.h).
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>

#include "torchscript/graph/program.h"

namespace ltc::torchscript {

// Whether it suits this aten::convolution, or aten::convolution_backward.
bool suits_winograd(const torch::jit::Node& node);
bool suits_winograd_backward(const torch::jit::Node& node);

// As aten::convolution and aten::convolution_backward, for those that it suits; images are read and written channels-last.
// Results do not depend on the number of threads. Results that depend on an infinite operand may be NaN.
at::Tensor winograd_convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                                at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                                at::IntArrayRef output_padding, int64_t groups);
// The same in two steps: the transformed weight, and the convolution with it.
at::Tensor winograd_points(const at::Tensor& weight);
at::Tensor convolve_points(const at::Tensor& input, const at::Tensor& points, int64_t results,
                           const std::optional<at::Tensor>& bias, at::IntArrayRef padding);
std::tuple<at::Tensor, at::Tensor, at::Tensor> winograd_convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> output_mask);

}  // namespace ltc::torchscript
