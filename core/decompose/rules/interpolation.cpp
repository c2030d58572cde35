// Interpolation: products with matrices of weights, one per dim.
#include <algorithm>
#include <cmath>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/series.h"

namespace ltc::decompose {
namespace {

// How far an output step goes in the input: a scale that was given counts as 1 / scale.
double scale_of(const Call& call, const char* name, int64_t in, int64_t out, bool corners) {
  if (corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  const auto given = call.given(name) ? call.constant(name) : std::nullopt;
  return given && *given > 0 ? 1 / *given : static_cast<double>(in) / static_cast<double>(out);
}

// Hat functions of width 1 around where the output's elements lie in the input.
Val linear_weights(Builder& b, DType dtype, int64_t in, int64_t out, double scale, bool corners) {
  const Val o = reshape(cast(iota(b, out), dtype), {out, 1}), i = reshape(cast(iota(b, in), dtype), {1, in});
  const Val centre = corners ? o * scale : maximum((o + 0.5) * scale - 0.5, 0.0);
  return maximum(1 - abs(minimum(centre, static_cast<double>(in - 1)) - i), 0.0);
}

// PyTorch's rule: floor(o * scale), within the input.
Val nearest_weights(Builder& b, DType dtype, int64_t in, int64_t out, double scale, double shift) {
  const Val o = cast(iota(b, out), DType::kF32);
  const Val source = minimum(cast(floor((o + shift) * cast(number(b, scale), DType::kF32)), DType::kI64), in - 1);
  return cast(reshape(source, {out, 1}) == reshape(iota(b, in), {1, in}), dtype);
}

// Keys' cubic convolution with a = -0.75, places beyond the edge being the edge.
Val cubic_weights(Builder& b, DType dtype, int64_t in, int64_t out, double scale, bool corners) {
  const Val o = reshape(cast(iota(b, out), dtype), {out, 1}), i = reshape(iota(b, in), {1, in});
  const Val centre = corners ? o * scale : (o + 0.5) * scale - 0.5, base = floor(centre), t = centre - base;
  constexpr double kA = -0.75;
  const Val taps[] = {cubic_far(t + 1, kA), cubic_near(t, kA), cubic_near(1 - t, kA), cubic_far(2 - t, kA)};
  Val result;
  for (int64_t tap = 0; tap < 4; ++tap) {
    const Val at = minimum(maximum(cast(base, DType::kI64) + (tap - 1), 0), in - 1);
    const Val part = cast(at == i, dtype) * taps[tap];
    result = result ? result + part : part;
  }
  return result;
}

// Antialiased: the filter as wide as an output element, what of it lies within the input made to add up to 1.
Val smooth_weights(Builder& b, DType dtype, int64_t in, int64_t out, double scale, bool cubic) {
  constexpr double kA = -0.5;
  const double width = std::max(scale, 1.0), support = (cubic ? 2 : 1) * width;
  const Val o = reshape(cast(iota(b, out), dtype), {out, 1}), i = reshape(cast(iota(b, in), dtype), {1, in});
  const Val centre = (o + 0.5) * scale;
  const Val begin = maximum(trunc(centre - support + 0.5), 0), end = minimum(trunc(centre + support + 0.5), in);
  const Val x = abs(i - centre + 0.5) / width;
  const Val filter = cubic ? where(x < 1, cubic_near(x, kA), where(x < 2, cubic_far(x, kA), zeros_like(x))) : maximum(1 - x, 0);
  const Val kept = where((i >= begin) & (i < end), filter, zeros_like(filter));
  return kept / sum(kept, {1}, true);
}

enum class Method { kNearest, kNearestExact, kLinear, kCubic, kSmoothLinear, kSmoothCubic };

Val weights_of(Method method, Builder& b, DType dtype, int64_t in, int64_t out, double scale, bool corners) {
  switch (method) {
    case Method::kNearest: return nearest_weights(b, dtype, in, out, scale, 0.0);
    case Method::kNearestExact: return nearest_weights(b, dtype, in, out, scale, 0.5);
    case Method::kLinear: return linear_weights(b, dtype, in, out, scale, corners);
    case Method::kCubic: return cubic_weights(b, dtype, in, out, scale, corners);
    default: return smooth_weights(b, dtype, in, out, scale, method == Method::kSmoothCubic);
  }
}

constexpr const char* kScales[][3] = {{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};

template <size_t kDims, Method kMethod, bool kBackward>
Results upsample(const Call& call) {
  Val x = call.math(kBackward ? "grad_output" : "self");
  if (call.result().element_count == 0 || x.count() == 0) return nothing();
  const bool corners = kMethod != Method::kNearest && kMethod != Method::kNearestExact && call.flag("align_corners");
  const Ints& target = call.result().sizes;
  for (size_t i = 0; i < kDims; ++i) {
    const auto dim = static_cast<int64_t>(i + 2);
    const int64_t in = kBackward ? target[i + 2] : x.size(dim), out = kBackward ? x.size(dim) : target[i + 2];
    const double scale = scale_of(call, kScales[kDims - 1][i], in, out, corners);
    const Val weights = weights_of(kMethod, call.builder(), x.dtype(), in, out, scale, corners);
    x = apply_along(x, dim, kBackward ? transpose(weights, 0, 1) : weights);
  }
  return x;
}

constexpr Decomposition kRules[] = {
    {"aten::upsample_nearest1d", upsample<1, Method::kNearest, false>},
    {"aten::upsample_nearest2d", upsample<2, Method::kNearest, false>},
    {"aten::upsample_nearest3d", upsample<3, Method::kNearest, false>},
    {"aten::upsample_nearest1d_backward", upsample<1, Method::kNearest, true>},
    {"aten::upsample_nearest2d_backward", upsample<2, Method::kNearest, true>},
    {"aten::upsample_nearest3d_backward", upsample<3, Method::kNearest, true>},
    {"aten::_upsample_nearest_exact1d", upsample<1, Method::kNearestExact, false>},
    {"aten::_upsample_nearest_exact2d", upsample<2, Method::kNearestExact, false>},
    {"aten::_upsample_nearest_exact3d", upsample<3, Method::kNearestExact, false>},
    {"aten::_upsample_nearest_exact1d_backward", upsample<1, Method::kNearestExact, true>},
    {"aten::_upsample_nearest_exact2d_backward", upsample<2, Method::kNearestExact, true>},
    {"aten::_upsample_nearest_exact3d_backward", upsample<3, Method::kNearestExact, true>},
    {"aten::upsample_bicubic2d", upsample<2, Method::kCubic, false>},
    {"aten::upsample_bicubic2d_backward", upsample<2, Method::kCubic, true>},
    {"aten::_upsample_bilinear2d_aa", upsample<2, Method::kSmoothLinear, false>},
    {"aten::_upsample_bilinear2d_aa_backward", upsample<2, Method::kSmoothLinear, true>},
    {"aten::_upsample_bicubic2d_aa", upsample<2, Method::kSmoothCubic, false>},
    {"aten::_upsample_bicubic2d_aa_backward", upsample<2, Method::kSmoothCubic, true>},
    {"aten::upsample_linear1d", upsample<1, Method::kLinear, false>},
    {"aten::upsample_bilinear2d", upsample<2, Method::kLinear, false>},
    {"aten::upsample_trilinear3d", upsample<3, Method::kLinear, false>},
    {"aten::upsample_linear1d_backward", upsample<1, Method::kLinear, true>},
    {"aten::upsample_bilinear2d_backward", upsample<2, Method::kLinear, true>},
    {"aten::upsample_trilinear3d_backward", upsample<3, Method::kLinear, true>},
};

}  // namespace

std::span<const Decomposition> interpolation() { return kRules; }

}  // namespace ltc::decompose
