// Pooling. Means over windows of unequal sizes are products with matrices of weights, one per dim.
#include <algorithm>
#include <limits>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/pooling_windows.h"

namespace ltc::decompose {
namespace {

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
  const double lowest = lowest_of(x.dtype());
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
    const Val wins = is_floating(x.dtype()) ? (value > best) | is_nan(value) : value > best;
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

// The divisor of each window's sum: its size, clipped to the padded input and, unless padding counts, to the input.
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

// Where windows begin along a dim, by plane: at steps of (in - kernel) / (out - 1), begun at a random share of one, all rounded
// down; the last window ends at the end.
Val random_begins(Val share, int64_t in, int64_t out, int64_t kernel) {
  const Val last = full(*share.builder, DType::kI64, {share.size(0), 1}, in - kernel);
  if (out == 1) return last;
  const double step = static_cast<double>(in - kernel) / static_cast<double>(out - 1);
  const Val o = cast(reshape(iota(*share.builder, out - 1), {1, out - 1}), share.dtype());
  const Val begins = trunc((o + share) * step) - trunc(share * step);
  return cat({cast(begins, DType::kI64), last}, 1);
}

// random_samples: [batch, channels, dims]. The last of two dims comes first.
template <size_t kDims>
Results fractional_max_pool(const Call& call) {
  const Val x = call.math("self");
  if (x.count() == 0 || call.any_result().element_count == 0) return zeros_of(call);
  const Ints kernel = per_dim(call.ints("kernel_size"), kDims, 1), out = per_dim(call.ints("output_size"), kDims, 1);
  const Ints in(x.sizes().end() - static_cast<int64_t>(kDims), x.sizes().end());
  int64_t plane = 1;
  for (const int64_t size : in) plane *= size;
  const int64_t planes = x.count() / plane;
  const Val flat = reshape(x, {planes, plane}),
            samples = reshape(call.math("random_samples"), {planes, static_cast<int64_t>(kDims)});
  Windows w{kernel, Ints(kDims, 1), Ints(kDims, 0), Ints(kDims, 1), in, out};
  std::vector<Val> begins;
  for (size_t i = 0; i < kDims; ++i) {
    const auto which = static_cast<int64_t>(kDims == 2 ? kDims - 1 - i : i);
    Ints shape(kDims + 1, 1);
    shape[0] = planes, shape[i + 1] = out[i];
    begins.push_back(reshape(random_begins(slice(samples, 1, which, which + 1), in[i], out[i], kernel[i]), shape));
  }
  Val best, index;
  for_each_place(w, [&](const Ints& place) {
    Val at;
    for (size_t i = 0; i < kDims; ++i) at = at ? at * in[i] + (begins[i] + place[i]) : begins[i] + place[i];
    at = reshape(at, {planes, -1});
    const Val value = gather(flat, 1, at);
    const Val wins = best ? (value > best) | is_nan(value) : Val();
    index = best ? where(wins, at, index) : at;
    best = best ? where(wins, value, best) : value;
  });
  return {in_shape_of(call, 0, best), in_shape_of(call, 1, index)};
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
    {"aten::max_unpool2d", max_unpool<2>},
    {"aten::max_unpool3d", max_unpool<3>},
    {"aten::fractional_max_pool2d", fractional_max_pool<2>},
    {"aten::fractional_max_pool2d_backward", max_pool_backward<2>},
    {"aten::fractional_max_pool3d", fractional_max_pool<3>},
    {"aten::fractional_max_pool3d_backward", max_pool_backward<3>},
    {"aten::adaptive_max_pool2d", adaptive_max_pool<2>},
    {"aten::adaptive_max_pool3d", adaptive_max_pool<3>},
    {"aten::adaptive_max_pool2d_backward", max_pool_backward<2>},
    {"aten::adaptive_max_pool3d_backward", max_pool_backward<3>},
};

}  // namespace

std::span<const Decomposition> pooling() { return kRules; }

}  // namespace ltc::decompose
