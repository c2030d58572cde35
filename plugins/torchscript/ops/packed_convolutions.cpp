#include "torchscript/ops/packed_convolutions.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cpu_kernels/images.h"
#include "cpu_kernels/winograd.h"
#include "torchscript/graph/graph_editor.h"
#include "torchscript/ops/convolutions.h"
#include "torchscript/ops/image_layout.h"
#include "torchscript/ops/products.h"
#include "torchscript/ops/winograd.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;

// An image has few results: oneDNN's kernels multiply a row of them at a time, a product of matrices those of all images.
constexpr int64_t kFewResults = 4;
constexpr int64_t kGrain = 1 << 14;       // elements
constexpr int64_t kResultsTogether = 16;  // a cache line

using OneDnnConvolution = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, at::IntArrayRef,
                                     at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                                     c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
using OneDnnReorder = at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                                 at::OptionalIntArrayRef);

// Those by which torch.compile runs convolutions with packed weights.
std::optional<c10::OperatorHandle> onednn_op(const char* name) {
  return c10::Dispatcher::singleton().findSchema({std::string("mkldnn::") + name, ""});
}

struct Extent {
  int64_t image, window, stride, padding, dilation;
  int64_t results() const { return (image + 2 * padding - dilation * (window - 1) - 1) / stride + 1; }
  int64_t place(int64_t result, int64_t tap) const { return result * stride - padding + tap * dilation; }
  bool is_inside(int64_t place) const { return place >= 0 && place < image; }

  // The taps that lie on the image for some result.
  std::vector<int64_t> taps() const {
    std::vector<int64_t> reached;
    for (int64_t tap = 0; tap < window; ++tap) {
      bool reaches = false;
      for (int64_t result = 0; result < results(); ++result) reaches |= is_inside(place(result, tap));
      if (reaches) reached.push_back(tap);
    }
    return reached;
  }
};

// Rows, then columns.
std::array<Extent, 2> extents_of(at::IntArrayRef image, at::IntArrayRef window, at::IntArrayRef stride, at::IntArrayRef padding,
                                 at::IntArrayRef dilation) {
  return {{{image[2], window[0], stride[0], padding[0], dilation[0]}, {image[3], window[1], stride[1], padding[1], dilation[1]}}};
}

std::optional<std::array<Extent, 2>> extents_of(const Node& convolution) {
  const auto stride = constant_ints(*convolution.input(3)), padding = constant_ints(*convolution.input(4)),
             dilation = constant_ints(*convolution.input(5));
  const auto weight = spec_of(*convolution.input(1)).sizes;
  if (!stride || !padding || !dilation || stride->size() != 2 || padding->size() != 2 || dilation->size() != 2) return {};
  return extents_of(spec_of(*convolution.input(0)).sizes, at::IntArrayRef(weight).slice(2), *stride, *padding, *dilation);
}

// Channels-last, each result's weights times its factor.
at::Tensor scaled_channels_last(const at::Tensor& weight, const at::Tensor& factors) {
  const int64_t results = weight.size(0), channels = weight.size(1), taps = weight.size(2) * weight.size(3);
  at::Tensor out(at::detail::empty_cpu(weight.sizes(), at::kFloat, /*pin_memory=*/false, at::MemoryFormat::ChannelsLast));
  const float *const from = weight.const_data_ptr<float>(), *const factor = factors.const_data_ptr<float>();
  float* const to = out.mutable_data_ptr<float>();
  divide(results, std::max<int64_t>(1, kGrain / (channels * taps)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* const weights = to + i * channels * taps;
      cpu::transpose(from + i * channels * taps, channels, taps, taps, weights);
      for (int64_t k = 0; k < channels * taps; ++k) weights[k] *= factor[i];
    }
  });
  return out;
}

// Rows are taps, and of each the channels; columns are results, each times its factor.
at::Tensor matrix_of(const at::Tensor& weight, const at::Tensor& factors, const std::array<Extent, 2>& extents) {
  const int64_t results = weight.size(0), channels = weight.size(1), each = channels * weight.size(2) * weight.size(3);
  std::vector<int64_t> taps;
  for (const int64_t row : extents[0].taps()) {
    for (const int64_t column : extents[1].taps()) taps.push_back(row * extents[1].window + column);
  }
  at::Tensor matrix(at::detail::empty_cpu({static_cast<int64_t>(taps.size()) * channels, results}, at::kFloat));
  const float *const from = weight.const_data_ptr<float>(), *const factor = factors.const_data_ptr<float>();
  float* const to = matrix.mutable_data_ptr<float>();
  // Some results at a time, of which the transposed weights stay in the cache.
  divide((results + kResultsTogether - 1) / kResultsTogether, 1, [&](int64_t begin, int64_t end) {
    const at::Tensor transposed(at::detail::empty_cpu({each, kResultsTogether}, at::kFloat));
    float* const turned = transposed.mutable_data_ptr<float>();
    for (int64_t first = begin * kResultsTogether; first < std::min(results, end * kResultsTogether); first += kResultsTogether) {
      const int64_t count = std::min(kResultsTogether, results - first);
      cpu::transpose(from + first * each, count, each, each, turned);
      float* row = to + first;
      for (const int64_t tap : taps) {
        for (int64_t channel = 0; channel < channels; ++channel, row += results) {
          const float* const weights = turned + (channel * weight.size(2) * weight.size(3) + tap) * count;
          for (int64_t i = 0; i < count; ++i) row[i] = weights[i] * factor[first + i];
        }
      }
    }
  });
  return matrix;
}

// A row per result of an image: what its taps lie on, zeros beside the image.
at::Tensor gather(const at::Tensor& image, const std::array<Extent, 2>& extents) {
  const int64_t channels = image.size(1);
  const auto rows = extents[0].taps(), columns = extents[1].taps();
  const auto inner = static_cast<int64_t>(rows.size() * columns.size()) * channels;
  const int64_t along = extents[1].results(), each = extents[0].results() * along;
  at::Tensor gathered(at::detail::empty_cpu({image.size(0) * each, inner}, at::kFloat));
  const float* const from = image.const_data_ptr<float>();
  divide(gathered.size(0), std::max<int64_t>(1, kGrain / std::max<int64_t>(inner, 1)), [&](int64_t begin, int64_t end) {
    float* to = gathered.mutable_data_ptr<float>() + begin * inner;
    for (int64_t i = begin; i < end; ++i) {
      for (const int64_t row : rows) {
        for (const int64_t column : columns) {
          const int64_t y = extents[0].place(i % each / along, row), x = extents[1].place(i % along, column);
          const bool is_inside = extents[0].is_inside(y) && extents[1].is_inside(x);
          const float* const pixel = from + ((i / each * extents[0].image + y) * extents[1].image + x) * channels;
          to = is_inside ? std::copy_n(pixel, channels, to) : std::fill_n(to, channels, 0.0F);
        }
      }
    }
  });
  return gathered;
}

}  // namespace

std::optional<WeightForm> weight_form_for(const Node& convolution) {
  if (!has_channels_last_kernel(convolution, false) || !repays_conversion(convolution, false)) return std::nullopt;
  const auto groups = constant_int(*convolution.input(8));
  const auto extents = extents_of(convolution);
  if (!groups || !extents || spec_of(*convolution.output()).dtype != at::kFloat) return std::nullopt;
  if (convolution.kind().toQualString() == std::string_view("ltc_torchscript::winograd_convolution")) {
    return WeightForm::kWinogradPoints;
  }
  const int64_t results = (*extents)[0].results() * (*extents)[1].results();
  if (groups == 1 && results > 0 && results <= kFewResults) return WeightForm::kMatrix;
  const bool has_kernel = at::hasMKLDNN() && at::globalContext().userEnabledMkldnn() && onednn_op("_convolution_pointwise") &&
                          onednn_op("_reorder_convolution_weight");
  return has_kernel && results > 0 ? std::optional(WeightForm::kOneDnn) : std::nullopt;
}

std::vector<int64_t> packed_sizes(WeightForm form, const Node& convolution) {
  std::vector<int64_t> weight = spec_of(*convolution.input(1)).sizes;
  if (form == WeightForm::kOneDnn) return weight;
  if (form == WeightForm::kWinogradPoints) return {cpu::points_size(weight[1], weight[0]) / weight[1], weight[1]};
  const auto extents = extents_of(convolution).value();
  return {weight[0], static_cast<int64_t>(extents[0].taps().size() * extents[1].taps().size()) * weight[1]};
}

std::tuple<at::Tensor, at::Tensor> pack_convolution(const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                                                    const std::optional<at::Tensor>& scale,
                                                    const std::optional<at::Tensor>& shift, const std::optional<at::Tensor>& mean,
                                                    const std::optional<at::Tensor>& variance, double eps, at::IntArrayRef image,
                                                    at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                                                    int64_t groups, int64_t form) {
  const at::Tensor plain = weight.resolve_neg().contiguous();
  at::Tensor factor = at::ones({weight.size(0)}, weight.options());
  // Memory of its own: who updates the bias in place has to be alone with it.
  at::Tensor added = bias && bias->defined() ? bias->clone(at::MemoryFormat::Contiguous).resolve_neg()
                                             : at::zeros({weight.size(0)}, weight.options());
  const bool has_norm = mean && variance;
  if (has_norm) {
    factor = at::rsqrt(*variance + eps);
    if (scale && scale->defined()) factor = factor * *scale;
    added = (added - *mean) * factor;
    if (shift && shift->defined()) added = added + *shift;
  }
  if (static_cast<WeightForm>(form) == WeightForm::kMatrix) {
    return {matrix_of(plain, factor, extents_of(image, weight.sizes().slice(2), stride, padding, dilation)).t(), added};
  }
  if (static_cast<WeightForm>(form) == WeightForm::kWinogradPoints) {
    const at::Tensor scaled = has_norm ? plain * factor.view({-1, 1, 1, 1}) : plain;
    return {winograd_points(scaled).view({-1, weight.size(1)}), added};
  }
  // Fast from channels-last weights alone.
  static const auto reorder = onednn_op("_reorder_convolution_weight").value().typed<OneDnnReorder>();
  return {reorder.call(scaled_channels_last(plain, factor), padding, stride, dilation, groups, image), added};
}

at::Tensor packed_convolution(const at::Tensor& image, const at::Tensor& weight, const at::Tensor& bias, at::IntArrayRef window,
                              at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, int64_t groups) {
  static const auto op = onednn_op("_convolution_pointwise").value().typed<OneDnnConvolution>();
  const auto convolve = [&](const at::Tensor& images) {
    return op.call(images, weight, bias, padding, stride, dilation, groups, "none", c10::List<std::optional<at::Scalar>>(), "");
  };
  const auto [rows, columns] = extents_of(image.sizes(), window, stride, padding, dilation);
  const int64_t results = image.size(0) * bias.size(0) * rows.results() * columns.results();
  const auto size_bytes = results * static_cast<int64_t>(sizeof(float));
  return suits_division(image.size(0), size_bytes) ? divide_images(images_last(image), convolve) : convolve(images_last(image));
}

at::Tensor packed_winograd_convolution(const at::Tensor& image, const at::Tensor& points, const at::Tensor& bias, at::IntArrayRef,
                                       at::IntArrayRef, at::IntArrayRef padding, at::IntArrayRef, int64_t) {
  return convolve_points(image, points, bias.size(0), bias, padding);
}

at::Tensor convolution_by_matrix(const at::Tensor& image, const at::Tensor& matrix, const at::Tensor& bias,
                                 at::IntArrayRef window, at::IntArrayRef stride, at::IntArrayRef padding,
                                 at::IntArrayRef dilation, int64_t) {
  const auto extents = extents_of(image.sizes(), window, stride, padding, dilation);
  const at::Tensor results = addmm({bias, gather(images_last(image), extents), matrix.t(), 1, 1});
  return results.view({image.size(0), extents[0].results(), extents[1].results(), bias.size(0)}).permute({0, 3, 1, 2});
}

}  // namespace ltc::torchscript
