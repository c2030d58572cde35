// Pooling and interpolation.
//
// A window is the list of its places: each place of the kernel, for all windows at once, is a strided slice of the padded input.
// Means over windows of unequal sizes and linear interpolation are products with matrices of weights, one per dim.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/decompose/families.h"

namespace ltc::decompose {
namespace {

// Options with one element stand for all dims.
Ints per_dim(Ints values, size_t dims, int64_t otherwise) {
  if (values.empty()) values.push_back(otherwise);
  if (values.size() == 1) values.resize(dims, values[0]);
  return values;
}

// How windows lie over the last `kernel.size()` dims.
struct Windows {
  Ints kernel, stride, padding, dilation;
  Ints input, output;

  size_t dims() const { return kernel.size(); }
  // Zeros needed behind, so that the last window, which may reach beyond the padding, lies within.
  int64_t behind(size_t i) const {
    return std::max<int64_t>((output[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1 - input[i] - padding[i], padding[i]);
  }
  int64_t places() const {
    int64_t count = 1;
    for (const int64_t size : kernel) count *= size;
    return count;
  }
};

Windows windows_of(const Call& call, const Ints& input, const Ints& output, size_t dims) {
  Windows w;
  w.kernel = per_dim(call.ints("kernel_size"), dims, 1);
  w.stride = call.ints("stride").empty() ? w.kernel : per_dim(call.ints("stride"), dims, 1);
  w.padding = per_dim(call.ints("padding"), dims, 0);
  w.dilation.assign(dims, 1);
  w.input.assign(input.end() - static_cast<int64_t>(dims), input.end());
  w.output.assign(output.end() - static_cast<int64_t>(dims), output.end());
  return w;
}

Val padded(Val x, const Windows& w, double with) {
  Ints amounts;
  for (size_t i = w.dims(); i-- > 0;) amounts.insert(amounts.end(), {w.padding[i], w.behind(i)});
  return std::ranges::all_of(amounts, [](int64_t amount) { return amount == 0; }) ? x : pad(x, amounts, with);
}

// Calls `visit` with each place of the kernel, as an index per dim.
template <typename Visit>
void for_each_place(const Windows& w, Visit visit) {
  Ints place(w.dims(), 0);
  for (int64_t n = 0; n < w.places(); ++n) {
    visit(place);
    for (size_t i = w.dims(); i-- > 0;) {
      if (++place[i] < w.kernel[i]) break;
      place[i] = 0;
    }
  }
}

// What all windows have at one place of the kernel.
Val at_place(Val x, const Windows& w, const Ints& place) {
  for (size_t i = 0; i < w.dims(); ++i) {
    const int64_t dim = x.rank() - static_cast<int64_t>(w.dims() - i), begin = place[i] * w.dilation[i];
    x = slice(x, dim, begin, begin + (w.output[i] - 1) * w.stride[i] + 1, w.stride[i]);
  }
  return x;
}

// The position of that place in the input, row-major over its last dims; shaped to broadcast over the windows.
Val position_of(Builder& b, const Windows& w, const Ints& place) {
  Val result = full(b, DType::kI64, Ints(w.dims(), 1), int64_t{0});
  for (size_t i = 0; i < w.dims(); ++i) {
    Ints shape(w.dims(), 1);
    shape[i] = w.output[i];
    const Val along = reshape(iota(b, w.output[i]), shape) * w.stride[i] + (place[i] * w.dilation[i] - w.padding[i]);
    result = result * w.input[i] + along;
  }
  return result;
}

// Compares place by place: the first largest wins, NaN wins over all.
template <size_t kDims>
Results max_pool(const Call& call) {
  const Val x = call.math("self");
  if (call.any_result().element_count == 0) return nothing();
  Windows w = windows_of(call, x.sizes(), call.any_result().sizes, kDims);
  w.dilation = per_dim(call.ints("dilation"), kDims, 1);
  const double lowest = is_floating(x.dtype()) ? -std::numeric_limits<double>::infinity() : 0;
  if (!is_floating(x.dtype())) return nothing();
  const Val wide = padded(x, w, lowest);
  Val best, index;
  for_each_place(w, [&](const Ints& place) {
    const Val value = at_place(wide, w, place);
    const Val position = call.wants(1) ? expand(position_of(call.builder(), w, place), value.sizes()) : Val();
    if (!best) {
      best = value, index = position;
      return;
    }
    // A first place outside the input gives way to any value inside.
    const Val wins = (value > best) | is_nan(value);
    if (index) {
      const Val outside = best == lowest;
      index = where(wins | (outside & (value == lowest) & (position >= 0) & (index < 0)), position, index);
    }
    best = where(wins, value, best);
  });
  return {best, index};
}

template <size_t kDims>
Results max_pool_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.tensor("self"), index = call.tensor("indices");
  if (g.count() == 0 || x.count() == 0) return zeros_like(x);
  int64_t plane = 1, windows = 1;
  for (size_t i = 1; i <= kDims; ++i) {
    plane *= x.size(-static_cast<int64_t>(i)), windows *= g.size(-static_cast<int64_t>(i));
  }
  const int64_t planes = x.count() / plane;
  const Val zeros = full(call.builder(), g.dtype(), {planes, plane}, int64_t{0});
  return reshape(scatter_add(zeros, 1, reshape(index, {planes, windows}), reshape(g, {planes, windows})), x.sizes());
}

// What the sum over each window is divided by: its size, clipped to the padded input and, unless padding counts, to the input.
Val divisors(const Call& call, const Windows& w, DType dtype) {
  Builder& b = call.builder();
  if (call.given("divisor_override")) return cast(number(b, static_cast<double>(call.integer("divisor_override"))), dtype);
  Val result = full(b, dtype, Ints(w.dims(), 1), int64_t{1});
  for (size_t i = 0; i < w.dims(); ++i) {
    Ints shape(w.dims(), 1);
    shape[i] = w.output[i];
    const Val begin = reshape(iota(b, w.output[i]), shape) * w.stride[i] - w.padding[i];
    const Val end = minimum(begin + w.kernel[i], w.input[i] + w.padding[i]);
    const bool all_counts = call.flag("count_include_pad");
    const Val size = all_counts ? end - begin : minimum(end, w.input[i]) - maximum(begin, 0);
    result = result * cast(size, dtype);
  }
  return result;
}

template <size_t kDims>
Results mean_pool(const Call& call) {
  const Val x = call.math("self");
  if (call.result().element_count == 0) return nothing();
  const Windows w = windows_of(call, x.sizes(), call.result().sizes, kDims);
  const Val wide = padded(x, w, 0);
  Val total;
  for_each_place(w, [&](const Ints& place) { total = total ? total + at_place(wide, w, place) : at_place(wide, w, place); });
  return total / divisors(call, w, x.dtype());
}

// Each window's share goes back to all its places: a transposed convolution with ones.
template <size_t kDims>
Results mean_pool_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.tensor("self");
  if (g.count() == 0) return nothing();
  const Windows w = windows_of(call, x.sizes(), g.sizes(), kDims);
  const Val share = g / divisors(call, w, g.dtype());
  int64_t windows = 1;
  for (const int64_t size : w.output) windows *= size;
  const int64_t planes = g.count() / windows;
  Ints batch = {planes, 1}, ones = {1, 1};
  batch.insert(batch.end(), w.output.begin(), w.output.end());
  ones.insert(ones.end(), w.kernel.begin(), w.kernel.end());
  const Ints zero(kDims, 0), one(kDims, 1);
  Val wide =
      convolution(reshape(share, batch), full(call.builder(), g.dtype(), ones, int64_t{1}), {w.stride, zero, one, true, zero, 1});
  Ints behind;
  for (size_t i = kDims; i-- > 0;) {
    behind.insert(behind.end(), {0, std::max<int64_t>(w.padding[i] + w.input[i] - wide.size(static_cast<int64_t>(i + 2)), 0)});
  }
  wide = pad(wide, behind, 0.0);
  for (size_t i = 0; i < kDims; ++i) wide = slice(wide, static_cast<int64_t>(i + 2), w.padding[i], w.padding[i] + w.input[i]);
  return reshape(wide, x.sizes());
}

// ---- one matrix of weights per dim

// x with `matrix`, of sizes [new, old], applied along a dim.
Val apply_along(Val x, int64_t dim, Val matrix) {
  dim = x.wrap(dim);
  const Val last = transpose(x, dim, -1);
  Ints sizes = last.sizes();
  sizes.back() = matrix.size(0);
  const Val flat = reshape(last, {x.count() / std::max<int64_t>(x.size(dim), 1), x.size(dim)});
  return transpose(reshape(matmul2(flat, transpose(matrix, 0, 1)), sizes), dim, -1);
}

// Window o covers [floor(o in / out), ceil((o + 1) in / out)).
Val adaptive_weights(Builder& b, DType dtype, int64_t in, int64_t out) {
  const Val o = reshape(iota(b, out), {out, 1}), i = reshape(iota(b, in), {1, in});
  const auto whole = [](Val v, int64_t by) { return cast(floor(cast(v, DType::kF64) / static_cast<double>(by)), DType::kI64); };
  const Val begin = whole(o * in, out), end = whole((o + 1) * in + (out - 1), out);
  return cast((i >= begin) & (i < end), dtype) / cast(end - begin, dtype);
}

template <size_t kDims>
Results adaptive_mean_pool(const Call& call) {
  Val x = call.math("self");
  if (call.result().element_count == 0 || x.count() == 0) return nothing();
  const Ints& out = call.result().sizes;
  for (size_t i = 1; i <= kDims; ++i) {
    const auto dim = -static_cast<int64_t>(i);
    x = apply_along(x, dim, adaptive_weights(call.builder(), x.dtype(), x.size(dim), out[out.size() - i]));
  }
  return x;
}

template <size_t kDims>
Results adaptive_mean_pool_backward(const Call& call) {
  Val g = call.math("grad_output");
  const Ints& in = call.result().sizes;
  if (g.count() == 0 || call.result().element_count == 0) return nothing();
  for (size_t i = 1; i <= kDims; ++i) {
    const auto dim = -static_cast<int64_t>(i);
    g = apply_along(g, dim, transpose(adaptive_weights(call.builder(), g.dtype(), in[in.size() - i], g.size(dim)), 0, 1));
  }
  return g;
}

// All windows over the flattened last dims at once: a mask says which places are in which window.
template <size_t kDims>
Results adaptive_max_pool(const Call& call) {
  const Val x = call.math("self");
  Builder& b = call.builder();
  if (x.count() == 0) return nothing();
  Val mask = full(b, DType::kBool, {1, 1}, int64_t{1});
  int64_t plane = 1, windows = 1;
  const Ints out = call.ints("output_size");
  for (size_t i = 0; i < kDims; ++i) {
    const int64_t in = x.size(static_cast<int64_t>(i) - static_cast<int64_t>(kDims));
    const Val inside = adaptive_weights(b, DType::kF32, in, out[i]) > 0;
    mask = reshape(reshape(mask, {windows, 1, plane, 1}) & reshape(inside, {1, out[i], 1, in}), {windows * out[i], plane * in});
    windows *= out[i], plane *= in;
  }
  if (windows == 0) return nothing();
  const int64_t planes = x.count() / plane;
  const Val spread = where(mask, reshape(x, {planes, 1, plane}), -std::numeric_limits<double>::infinity());
  Ints sizes = x.sizes();
  std::copy(out.begin(), out.end(), sizes.end() - static_cast<int64_t>(kDims));
  const Val index = argmax(spread, 2);
  return {reshape(gather(reshape(x, {planes, plane}), 1, index), sizes), reshape(index, sizes)};
}

template <size_t kDims>
Results max_unpool(const Call& call) {
  const Val x = call.tensor("self"), index = call.tensor("indices");
  const Ints sizes = call.result().sizes;
  int64_t windows = 1, plane = 1;
  for (size_t i = 1; i <= kDims; ++i) windows *= x.size(-static_cast<int64_t>(i)), plane *= sizes[sizes.size() - i];
  if (x.count() == 0) return nothing();
  const int64_t planes = x.count() / windows;
  const Val zeros = full(call.builder(), x.dtype(), {planes, plane}, int64_t{0});
  return reshape(scatter(zeros, 1, reshape(index, {planes, windows}), reshape(x, {planes, windows})), sizes);
}

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
  const auto near = [&](Val x) { return ((x * (kA + 2) - (kA + 3)) * x) * x + 1; };
  const auto far = [&](Val x) { return ((x * kA - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  const Val taps[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  Val result;
  for (int64_t tap = 0; tap < 4; ++tap) {
    const Val at = minimum(maximum(cast(base, DType::kI64) + (tap - 1), 0), in - 1);
    const Val part = cast(at == i, dtype) * taps[tap];
    result = result ? result + part : part;
  }
  return result;
}

enum class Method { kNearest, kNearestExact, kLinear, kCubic };

constexpr const char* kScales[][3] = {{"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};

template <size_t kDims, Method kMethod, bool kBackward>
Results upsample(const Call& call) {
  Val x = call.math(kBackward ? "grad_output" : "self");
  if (call.result().element_count == 0 || x.count() == 0) return nothing();
  const bool corners = (kMethod == Method::kLinear || kMethod == Method::kCubic) && call.flag("align_corners");
  const Ints& target = call.result().sizes;
  for (size_t i = 0; i < kDims; ++i) {
    const auto dim = static_cast<int64_t>(i + 2);
    const int64_t in = kBackward ? target[i + 2] : x.size(dim), out = kBackward ? x.size(dim) : target[i + 2];
    const double scale = scale_of(call, kScales[kDims - 1][i], in, out, corners);
    const Val weights = kMethod == Method::kCubic    ? cubic_weights(call.builder(), x.dtype(), in, out, scale, corners)
                        : kMethod == Method::kLinear ? linear_weights(call.builder(), x.dtype(), in, out, scale, corners)
                                                     : nearest_weights(call.builder(), x.dtype(), in, out, scale,
                                                                       kMethod == Method::kNearestExact ? 0.5 : 0.0);
    x = apply_along(x, dim, kBackward ? transpose(weights, 0, 1) : weights);
  }
  return x;
}

constexpr Decomposition kRules[] = {
    {"aten::max_pool2d_with_indices", max_pool<2>},
    {"aten::max_pool2d_with_indices_backward", max_pool_backward<2>},
    {"aten::max_pool3d_with_indices", max_pool<3>},
    {"aten::max_pool3d_with_indices_backward", max_pool_backward<3>},
    {"aten::avg_pool2d", mean_pool<2>},
    {"aten::avg_pool2d_backward", mean_pool_backward<2>},
    {"aten::avg_pool3d", mean_pool<3>},
    {"aten::avg_pool3d_backward", mean_pool_backward<3>},
    {"aten::_adaptive_avg_pool2d", adaptive_mean_pool<2>},
    {"aten::_adaptive_avg_pool2d_backward", adaptive_mean_pool_backward<2>},
    {"aten::_adaptive_avg_pool3d", adaptive_mean_pool<3>},
    {"aten::_adaptive_avg_pool3d_backward", adaptive_mean_pool_backward<3>},
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
    {"aten::max_unpool2d", max_unpool<2>},
    {"aten::max_unpool3d", max_unpool<3>},
    {"aten::adaptive_max_pool2d", adaptive_max_pool<2>},
    {"aten::adaptive_max_pool3d", adaptive_max_pool<3>},
    {"aten::adaptive_max_pool2d_backward", max_pool_backward<2>},
    {"aten::adaptive_max_pool3d_backward", max_pool_backward<3>},
    {"aten::upsample_linear1d", upsample<1, Method::kLinear, false>},
    {"aten::upsample_bilinear2d", upsample<2, Method::kLinear, false>},
    {"aten::upsample_trilinear3d", upsample<3, Method::kLinear, false>},
    {"aten::upsample_linear1d_backward", upsample<1, Method::kLinear, true>},
    {"aten::upsample_bilinear2d_backward", upsample<2, Method::kLinear, true>},
    {"aten::upsample_trilinear3d_backward", upsample<3, Method::kLinear, true>},
};

}  // namespace

std::span<const Decomposition> pooling() { return kRules; }

}  // namespace ltc::decompose
