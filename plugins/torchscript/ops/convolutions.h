// Convolutions that are computed in chunks: few images divided among the plugin's own threads, wide windows by their columns.
#pragma once
#include <array>
#include <tuple>

#include <torch/csrc/jit/ir/ir.h>

#include "torchscript/ops/products.h"

namespace ltc::torchscript {

// What computes this node with some of the images in each thread; null for any other operator, and where the results are so large
// that joining them costs more than what is gained: OpenMP's threads have to be woken for each call, and everybody waits for the
// last.
Product find_divided_convolution(const torch::jit::Node& node);

// Whether a convolution's window has more columns than oneDNN's fast kernels for the gradient of a channels-last weight take:
// they leave it to a reference kernel that is many times slower.
bool has_wide_window(at::IntArrayRef weight_sizes);

// Whether oneDNN computes such a convolution, and the gradient of its images, faster row-major: its kernels for channels-last
// images take many channels at once.
bool is_faster_row_major(at::IntArrayRef weight_sizes);

// As aten::convolution_backward of channels-last images and any window. The weight's gradient is computed for some of the
// window's columns at a time.
std::tuple<at::Tensor, at::Tensor, at::Tensor> wide_convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> output_mask);

}  // namespace ltc::torchscript
