// Convolutions that are computed in chunks: few images divided among the plugin's own threads, wide windows by their columns.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/FunctionRef.h>
#include <torch/csrc/jit/ir/ir.h>

#include <array>
#include <tuple>
#include <vector>

namespace ltc::torchscript {

// aten::convolution with some of the images in each thread, operands in the order of the schema.
at::Tensor convolve_divided(const std::vector<c10::IValue>& operands);
// Any convolution so.
using Convolve = c10::function_ref<at::Tensor(const at::Tensor& images)>;
at::Tensor divide_images(const at::Tensor& images, Convolve convolve);
// Whether that is worth it for this convolution. Where the results are large, joining them costs more than what is gained:
// OpenMP's threads have to be woken for each call, and everybody waits for the last.
bool suits_division(const torch::jit::Node& node);
bool suits_division(int64_t images, int64_t result_bytes);

// Whether oneDNN has a fast kernel with channels-last operands for this aten::convolution, or aten::convolution_backward; whether
// it is long enough to convert images for it; and whether both are so and it is worth converting a weight too.
bool has_channels_last_kernel(const torch::jit::Node& node, bool is_backward);
bool repays_conversion(const torch::jit::Node& node, bool is_backward);
bool suits_channels_last(const torch::jit::Node& node, bool is_backward);

// Whether the window of this aten::convolution_backward of channels-last images has more columns than oneDNN's fast kernels for
// the gradient of a weight take: they leave it to a reference kernel that is many times slower.
bool suits_parts_of_window(const torch::jit::Node& node);
// As aten::convolution_backward of channels-last images and any window. The weight's gradient is computed for some of the
// window's columns at a time.
std::tuple<at::Tensor, at::Tensor, at::Tensor> wide_convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> output_mask);

}  // namespace ltc::torchscript
