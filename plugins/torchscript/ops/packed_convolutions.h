// Convolutions whose weight was brought into the form that the kernel multiplies with, once for many runs.
#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace ltc::torchscript {

// Saved programs have the numbers.
enum class WeightForm : int64_t {
  kOneDnn,          // oneDNN's blocks, for its kernel at this size of images
  kWinogradPoints,  // cpu_kernels/winograd.h
  kMatrix,          // results x taps and channels, without the taps that lie beside the image everywhere; by columns
};

// For an aten::convolution of F32 images, not transposed, with all numbers constant; nothing if no form suits.
std::optional<WeightForm> weight_form_for(const torch::jit::Node& convolution);
// The sizes that the packed weight is declared to have.
std::vector<int64_t> packed_sizes(WeightForm form, const torch::jit::Node& convolution);

// Weight and bias. Where `mean` and `variance` are given, a batch norm with these follows the convolution and becomes a part of
// both: `scale` and `shift` are its weight and bias. `image`: sizes of the images.
std::tuple<at::Tensor, at::Tensor> pack_convolution(const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                                                    const std::optional<at::Tensor>& scale,
                                                    const std::optional<at::Tensor>& shift, const std::optional<at::Tensor>& mean,
                                                    const std::optional<at::Tensor>& variance, double eps, at::IntArrayRef image,
                                                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                                    int64_t groups, int64_t form);

// One for each form, in their order. Images are read and written channels-last. `window`: rows and columns of the weight.
at::Tensor packed_convolution(const at::Tensor& image, const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef window,
                              at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups);
at::Tensor packed_winograd_convolution(const at::Tensor& image, const at::Tensor& points, const at::Tensor& bias,
                                       at::IntArrayRef window, at::IntArrayRef stride, at::IntArrayRef padding,
                                       at::IntArrayRef dilation, int64_t groups);
at::Tensor convolution_by_matrix(const at::Tensor& image, const at::Tensor& matrix, const at::Tensor& bias,
                                 at::IntArrayRef window, at::IntArrayRef stride, at::IntArrayRef padding,
                                 at::IntArrayRef dilation, int64_t groups);

}  // namespace ltc::torchscript
