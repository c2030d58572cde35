#include "torchscript/ops/convolutions.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/jit/ir/constants.h>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/graph/program.h"
#include "torchscript/ops/image_layout.h"
#include "torchscript/threads/quiet_dispatch.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

constexpr int64_t kLargestResult = 1 << 20;  // bytes; it stays in the cache until it is joined

at::Tensor convolve(const at::Tensor& images, const std::vector<c10::IValue>& operands) {
  return at::convolution(images, operands[1].toTensor(), operands[2].toOptional<at::Tensor>(), operands[3].toIntVector(),
                         operands[4].toIntVector(), operands[5].toIntVector(), operands[6].toBool(), operands[7].toIntVector(),
                         operands[8].toInt());
}

constexpr int64_t kMostColumns = 14;  // of a window, for oneDNN's kernels with AVX-512
constexpr int64_t kFewChannels = 4;
constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

// Below this many results per channel the conversion of the weight weighs more than what is gained, and below this many
// multiplications that of the images.
constexpr int64_t kLeastPixels = 1024;
constexpr int64_t kLeastWork = 1 << 18;

bool has_wide_window(at::IntArrayRef weight_sizes) { return weight_sizes.size() == 4 && weight_sizes[3] > kMostColumns; }

// oneDNN's kernels for channels-last images take many channels at once.
bool is_faster_row_major(at::IntArrayRef weight_sizes) {
  return has_wide_window(weight_sizes) && weight_sizes[1] <= kFewChannels;
}

bool is_image(const TensorSpec& spec) { return spec.dtype == at::kFloat && spec.sizes.size() == 4; }

// Where windows lie beside the images altogether, oneDNN has slow kernels only, and the slowest for channels-last images.
bool pads_more_than_window(const torch::jit::Node& node, size_t weight_at, at::IntArrayRef weight) {
  const auto padding = constant_ints(*node.input(weight_at + 3)), dilation = constant_ints(*node.input(weight_at + 4));
  if (!padding || !dilation || padding->size() != 2 || dilation->size() != 2) return true;
  return (*padding)[0] > (weight[2] - 1) * (*dilation)[0] || (*padding)[1] > (weight[3] - 1) * (*dilation)[1];
}

}  // namespace

// Backward, the gradient of the result is the first operand.
bool has_channels_last_kernel(const torch::jit::Node& node, bool is_backward) {
  const size_t image_at = is_backward ? 1 : 0, weight_at = image_at + 1;
  const TensorSpec weight = spec_of(*node.input(weight_at)), image = spec_of(*node.input(image_at));
  const auto transposed = torch::jit::toIValue(node.input(weight_at + 5));
  return is_image(weight) && is_image(image) && transposed && !transposed->toBool() &&
         !pads_more_than_window(node, weight_at, weight.sizes) && (is_backward || !is_faster_row_major(weight.sizes));
}

bool repays_conversion(const torch::jit::Node& node, bool is_backward) {
  const auto result = spec_of(is_backward ? *node.input(0) : *node.output(0)).sizes;
  const int64_t weight_size = c10::multiply_integers(spec_of(*node.input(is_backward ? 2 : 1)).sizes);
  return result.size() == 4 && result[0] * result[2] * result[3] * weight_size >= kLeastWork;
}

bool suits_channels_last(const torch::jit::Node& node, bool is_backward) {
  if (!has_channels_last_kernel(node, is_backward) || !repays_conversion(node, is_backward)) return false;
  const auto result = spec_of(is_backward ? *node.input(0) : *node.output(0)).sizes;
  return result[0] * result[2] * result[3] >= kLeastPixels;
}

bool suits_parts_of_window(const torch::jit::Node& node) {
  return suits_channels_last(node, true) && has_wide_window(spec_of(*node.input(2)).sizes);
}

bool suits_division(int64_t images, int64_t result_bytes) { return images > 1 && result_bytes <= kLargestResult; }

bool suits_division(const torch::jit::Node& node) {
  const TensorSpec images = spec_of(*node.input(0)), result = spec_of(*node.output());
  const auto size_bytes = c10::multiply_integers(result.sizes) * static_cast<int64_t>(c10::elementSize(result.dtype));
  return images.sizes.size() == 4 && suits_division(images.sizes[0], size_bytes);
}

at::Tensor convolve_divided(const std::vector<c10::IValue>& operands) {
  return divide_images(operands[0].toTensor(), [&](const at::Tensor& images) { return convolve(images, operands); });
}

at::Tensor divide_images(const at::Tensor& images, Convolve convolve) {
  const int64_t count = images.size(0), chunks = std::min<int64_t>(most_threads(), count);
  if (chunks <= 1) return convolve(images);
  const auto first = [&](int64_t chunk) { return count * chunk / chunks; };
  std::vector<at::Tensor> parts(static_cast<size_t>(chunks));
  for_each_chunk(chunks, [&](int64_t i) {
    const QuietDispatch quiet;
    parts[static_cast<size_t>(i)] = convolve(images.narrow(0, first(i), first(i + 1) - first(i)));
  });
  std::vector<int64_t> sizes = parts[0].sizes().vec();
  sizes[0] = count;
  at::Tensor result = at::empty(sizes, parts[0].options(), parts[0].suggest_memory_format());
  for_each_chunk(chunks, [&](int64_t i) {
    const QuietDispatch quiet;
    result.narrow(0, first(i), first(i + 1) - first(i)).copy_(parts[static_cast<size_t>(i)]);
  });
  return result;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> wide_convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, at::OptionalIntArrayRef bias_sizes,
    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> output_mask) {
  const auto differentiate = [&](const at::Tensor& gradient, const at::Tensor& images, const at::Tensor& taps,
                                 at::IntArrayRef pads, std::array<bool, 3> mask) {
    return at::convolution_backward(gradient, images, taps, bias_sizes, stride, pads, dilation, transposed, output_padding,
                                    groups, mask);
  };
  at::Tensor of_input, of_bias;
  if (output_mask[0]) {
    const auto format = is_faster_row_major(weight.sizes()) ? at::MemoryFormat::Contiguous : kChannelsLast;
    const auto laid = [&](const at::Tensor& tensor) { return in_format(tensor, format); };
    of_input = std::get<0>(differentiate(laid(grad_output), laid(input), laid(weight), padding, {true, false, false}));
  }
  if (!output_mask[1]) {
    if (output_mask[2]) of_bias = std::get<2>(differentiate(grad_output, input, weight, padding, {false, false, true}));
    return {std::move(of_input), at::Tensor(), std::move(of_bias)};
  }
  // Some columns of the window meet all images but for margins, which are columns of the padded images.
  const at::Tensor padded = padding[1] > 0 ? at::constant_pad_nd(input, {padding[1], padding[1]}) : input;
  at::Tensor of_weight = at::empty(weight.sizes(), weight.options());
  const int64_t columns = weight.size(3), parts = (columns - 1) / kMostColumns + 1;
  const int64_t extent = (grad_output.size(3) - 1) * stride[1] + 1;  // of the images that one column of the window meets
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t first = columns * i / parts, count = columns * (i + 1) / parts - first;
    const at::Tensor images = padded.narrow(3, first * dilation[1], extent + (count - 1) * dilation[1]);
    const at::Tensor taps = in_format(weight.narrow(3, first, count), kChannelsLast);
    const auto results = differentiate(grad_output, in_format(images, kChannelsLast), taps, {padding[0], 0},
                                       {false, true, output_mask[2] && i == 0});
    of_weight.narrow(3, first, count).copy_(std::get<1>(results));
    if (output_mask[2] && i == 0) of_bias = std::get<2>(results);
  }
  return {std::move(of_input), std::move(of_weight), std::move(of_bias)};
}

}  // namespace ltc::torchscript
