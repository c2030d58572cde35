#include "torchscript/ops/winograd.h"

#include <ATen/EmptyTensor.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "cpu_kernels/winograd.h"
#include "torchscript/graph/graph_editor.h"
#include "torchscript/ops/image_layout.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;

constexpr int64_t kTaps = 3;  // a side
// Below, oneDNN's convolutions cost less than what converts images and weights.
constexpr int64_t kLeastTiles = 64;
constexpr int64_t kPieceTiles = 48;  // worth being a piece of work
constexpr int64_t kChannelsTogether = 64;

at::Tensor empty(at::IntArrayRef sizes, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return at::Tensor(at::detail::empty_cpu(sizes, at::kFloat, /*pin_memory=*/false, format));
}

// Memory for a kernel, from a cache line on.
at::Tensor scratch(int64_t elements) { return empty({elements}); }

template <typename Element>
cpu::ImageView<Element> view_of(Element* data, const at::Tensor& image) {
  return {data, image.size(2), image.size(3), image.size(1)};
}
cpu::Images images_of(const at::Tensor& image) { return view_of(image.const_data_ptr<float>(), image); }

// As a right operand, whose rows are summed: the channels of the image that is convolved.
cpu::Taps forward_taps(const at::Tensor& weight) {
  return {weight.const_data_ptr<float>(), weight.stride(1), weight.stride(0), weight.stride(2), weight.stride(3)};
}

// The taps of the convolution by which the gradient goes back to the image.
cpu::Taps flipped_taps(const at::Tensor& weight) {
  const int64_t y = weight.stride(2), x = weight.stride(3);
  return {weight.const_data_ptr<float>() + (kTaps - 1) * (y + x), weight.stride(0), weight.stride(1), -y, -x};
}

at::Tensor points_of(const cpu::Taps& taps, int64_t channels, int64_t results) {
  at::Tensor points = scratch(cpu::points_size(channels, results));
  cpu::winograd_transform_taps(taps, channels, results, points.mutable_data_ptr<float>());
  return points;
}

// The convolution of images that lie channels-last.
at::Tensor convolve(const at::Tensor& from, const at::Tensor& points, const float* bias, at::IntArrayRef sizes,
                    int64_t row_padding, int64_t column_padding) {
  at::Tensor out = empty(sizes, at::MemoryFormat::ChannelsLast);
  const cpu::WinogradConvolution convolution{.from = images_of(from),
                                             .to = view_of(out.mutable_data_ptr<float>(), out),
                                             .row_padding = row_padding,
                                             .column_padding = column_padding,
                                             .points = points.const_data_ptr<float>(),
                                             .bias = bias};
  divide(sizes[0] * cpu::tiles_of(sizes[2]) * cpu::tiles_of(sizes[3]), kPieceTiles, [&](int64_t first, int64_t last) {
    cpu::winograd_convolve(convolution, first, last, scratch(cpu::winograd_scratch(convolution)).mutable_data_ptr<float>());
  });
  return out;
}

// The gradients of the weight and, unless it is undefined, of the bias.
void differentiate(const at::Tensor& gradient, const at::Tensor& input, at::IntArrayRef padding, at::Tensor& weight,
                   at::Tensor& bias) {
  const int64_t channels = input.size(1), results = gradient.size(1);
  const auto parts = [](int64_t count) { return (count + kChannelsTogether - 1) / kChannelsTogether; };
  const int64_t columns = parts(channels);
  // With several threads of one part each has some of the results.
  const int64_t rows =
      columns == 1 ? std::max(parts(results), std::min<int64_t>(most_threads(), results / cpu::kChannelStep)) : parts(results);
  const auto bound = [](int64_t count, int64_t part, int64_t of) {
    return count / cpu::kChannelStep * part / of * cpu::kChannelStep;
  };
  if (bias.defined()) bias.zero_();
  for_each_chunk(rows * columns, [&](int64_t i) {
    const int64_t row = i / columns, column = i % columns;
    const cpu::WinogradGradient part{
        .from = images_of(input),
        .gradient = images_of(gradient),
        .images = input.size(0),
        .row_padding = padding[0],
        .column_padding = padding[1],
        .first_channel = bound(channels, column, columns),
        .last_channel = bound(channels, column + 1, columns),
        .first_result = bound(results, row, rows),
        .last_result = bound(results, row + 1, rows),
        .taps = {weight.mutable_data_ptr<float>(), weight.stride(0), weight.stride(1), weight.stride(2), weight.stride(3)},
        .sums = bias.defined() && column == 0 ? bias.mutable_data_ptr<float>() : nullptr};
    cpu::winograd_add_up_taps(part, scratch(cpu::winograd_taps_scratch(part)).mutable_data_ptr<float>());
  });
}

// ---- which

bool has_all(const torch::jit::Value& list, int64_t value) {
  const auto ints = constant_ints(list);
  return ints && std::ranges::all_of(*ints, [&](int64_t i) { return i == value; });
}

// The weight is argument `weight`, what follows it is the same forward and backward.
bool suits(const Node& node, const TensorSpec& image, const TensorSpec& result, size_t weight) {
  const TensorSpec taps = spec_of(*node.input(weight));
  const auto is_image = [](const TensorSpec& spec) { return spec.dtype == at::kFloat && spec.sizes.size() == 4; };
  if (!is_image(image) || !is_image(result) || !is_image(taps)) return false;
  const auto padding = constant_ints(*node.input(weight + 3));
  const auto transposed = torch::jit::toIValue(node.input(weight + 5));
  return taps.sizes[2] == kTaps && taps.sizes[3] == kTaps && taps.sizes[0] % cpu::kChannelStep == 0 &&
         taps.sizes[1] % cpu::kChannelStep == 0 && taps.sizes[0] > 0 && taps.sizes[1] > 0 &&
         has_all(*node.input(weight + 2), 1) && padding && padding->size() == 2 &&
         std::ranges::all_of(*padding, [](int64_t i) { return i >= 0 && i < kTaps; }) && has_all(*node.input(weight + 4), 1) &&
         transposed && transposed->isBool() && !transposed->toBool() && constant_int(*node.input(weight + 7)) == 1 &&
         result.sizes[0] * cpu::tiles_of(result.sizes[2]) * cpu::tiles_of(result.sizes[3]) >= kLeastTiles;
}

}  // namespace

bool suits_winograd(const Node& node) { return suits(node, spec_of(*node.input(0)), spec_of(*node.output()), 1); }
bool suits_winograd_backward(const Node& node) { return suits(node, spec_of(*node.input(1)), spec_of(*node.input(0)), 2); }

at::Tensor winograd_points(const at::Tensor& weight) {
  return points_of(forward_taps(weight.resolve_neg()), weight.size(1), weight.size(0));
}

at::Tensor convolve_points(const at::Tensor& input, const at::Tensor& points, int64_t results,
                           const std::optional<at::Tensor>& bias, at::IntArrayRef padding) {
  const at::Tensor added = bias && bias->defined() ? bias->resolve_neg().contiguous() : at::Tensor();
  const auto out = [&](int64_t dim) { return input.size(dim) + 2 * padding[static_cast<size_t>(dim - 2)] - (kTaps - 1); };
  return convolve(images_last(input), points, added.defined() ? added.const_data_ptr<float>() : nullptr,
                  {input.size(0), results, out(2), out(3)}, padding[0], padding[1]);
}

at::Tensor winograd_convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                                at::IntArrayRef, at::IntArrayRef padding, at::IntArrayRef, bool, at::IntArrayRef, int64_t) {
  return convolve_points(input, winograd_points(weight), weight.size(0), bias, padding);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> winograd_convolution_backward(
    const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& weight, at::OptionalIntArrayRef, at::IntArrayRef,
    at::IntArrayRef padding, at::IntArrayRef, bool, at::IntArrayRef, int64_t, std::array<bool, 3> output_mask) {
  const at::Tensor gradient = images_last(grad_output);
  at::Tensor of_input, of_weight, of_bias;
  if (output_mask[0]) {
    constexpr int64_t kFull = kTaps - 1;
    const at::Tensor points = points_of(flipped_taps(weight.resolve_neg()), gradient.size(1), input.size(1));
    of_input = convolve(gradient, points, nullptr, input.sizes(), kFull - padding[0], kFull - padding[1]);
  }
  if (output_mask[1] || output_mask[2]) {
    of_weight = empty(weight.sizes());
    if (output_mask[2]) of_bias = empty({weight.size(0)});
    differentiate(gradient, images_last(input), padding, of_weight, of_bias);
  }
  return {std::move(of_input), std::move(of_weight), std::move(of_bias)};
}

}  // namespace ltc::torchscript
