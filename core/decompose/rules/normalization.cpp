// Layer, group and batch normalisation and their gradients.
#include "core/decompose/support/normalize.h"

#include <limits>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {

Normalized normalize(Val x, const Ints& dims, Val eps) {
  const Val centre = mean(x, dims, true), rest = x - centre, rstd = rsqrt(mean(square(rest), dims, true) + eps);
  return {rest * rstd, centre, rstd};
}

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The gradient of x_hat = (x - mean) * rstd for x, given that for x_hat.
Val normalize_backward(Val g, Val x_hat, Val rstd, const Ints& dims) {
  return (g - mean(g, dims, true) - x_hat * mean(g * x_hat, dims, true)) * rstd;
}

// The results if there are no elements: result `deviation` is NaN, as the deviation of nothing; all others are 0.
Results of_nothing(const Call& call, size_t deviation = SIZE_MAX) {
  Results results = zeros_of(call);
  if (call.wants(deviation)) results.values[deviation] = full_like(results.values[deviation], kNan);
  return results;
}

Ints last_dims(const Val& x, size_t count) {
  Ints dims;
  for (int64_t dim = x.rank() - static_cast<int64_t>(count); dim < x.rank(); ++dim) dims.push_back(dim);
  return dims;
}
Ints first_dims(size_t count) {
  Ints dims;
  for (int64_t dim = 0; dim < static_cast<int64_t>(count); ++dim) dims.push_back(dim);
  return dims;
}

Results layer_norm(const Call& call) {
  const Val x = call.math("input");
  if (x.count() == 0) return of_nothing(call, 2);
  const Ints dims = last_dims(x, call.ints("normalized_shape").size());
  const Normalized n = normalize(x, dims, call.number("eps"));
  Val y = n.y;
  if (const Val weight = call.math("weight")) y = y * weight;
  if (const Val bias = call.math("bias")) y = y + bias;
  return {y, n.mean, n.rstd};
}

Results layer_norm_backward(const Call& call) {
  const Val g = call.math("grad_out"), x = call.math("input"), weight = call.math("weight");
  if (x.count() == 0) return of_nothing(call);
  const Val centre = call.math("mean"), rstd = call.math("rstd"), x_hat = (x - centre) * rstd;
  const size_t inner = call.ints("normalized_shape").size();
  const Ints dims = last_dims(x, inner), outer = first_dims(static_cast<size_t>(x.rank()) - inner);
  const auto over_outer = [&](Val v) { return outer.empty() ? v : sum(v, outer); };
  Val dx, dweight, dbias;
  if (call.wants(0)) dx = normalize_backward(weight ? g * weight : g, x_hat, rstd, dims);
  if (call.wants(1)) dweight = over_outer(g * x_hat);
  if (call.wants(2)) dbias = over_outer(g);
  return {dx, dweight, dbias};
}

// x as [N, groups, elements of a group].
Val by_group(Val x, int64_t n, int64_t groups) { return reshape(x, {n, groups, x.count() / std::max<int64_t>(n * groups, 1)}); }

Results group_norm(const Call& call) {
  const Val x = call.math("input");
  if (x.count() == 0) return of_nothing(call, 2);
  const int64_t n = call.integer("N"), c = call.integer("C"), hw = call.integer("HxW"), groups = call.integer("group");
  const Normalized norm = normalize(by_group(x, n, groups), {2}, call.number("eps"));
  Val y = reshape(norm.y, {n, c, hw});
  if (const Val weight = call.math("weight")) y = y * reshape(weight, {c, 1});
  if (const Val bias = call.math("bias")) y = y + reshape(bias, {c, 1});
  return {reshape(y, x.sizes()), reshape(norm.mean, {n, groups}), reshape(norm.rstd, {n, groups})};
}

Results group_norm_backward(const Call& call) {
  const Val x = call.math("input"), weight = call.math("weight");
  if (x.count() == 0) return of_nothing(call);
  const int64_t n = call.integer("N"), c = call.integer("C"), hw = call.integer("HxW"), groups = call.integer("group");
  const Val g = reshape(call.math("grad_out"), {n, c, hw});
  const Val centre = reshape(call.math("mean"), {n, groups, 1}), rstd = reshape(call.math("rstd"), {n, groups, 1});
  const Val x_hat = (by_group(x, n, groups) - centre) * rstd;
  Val dx, dweight, dbias;
  if (call.wants(0)) {
    const Val scaled = weight ? g * reshape(weight, {c, 1}) : g;
    dx = reshape(normalize_backward(by_group(scaled, n, groups), x_hat, rstd, {2}), x.sizes());
  }
  if (call.wants(1)) dweight = sum(g * reshape(x_hat, {n, c, hw}), {0, 2});
  if (call.wants(2)) dbias = sum(g, {0, 2});
  return {dx, dweight, dbias};
}

// A value per channel, shaped to broadcast along dim 1 of x.
Val per_channel(Val v, const Val& x) {
  Ints sizes(static_cast<size_t>(x.rank()), 1);
  sizes[1] = v.count();
  return reshape(v, sizes);
}

Val scale_and_shift(const Call& call, Val y) {
  if (const Val weight = call.math("weight")) y = y * per_channel(weight, y);
  if (const Val bias = call.math("bias")) y = y + per_channel(bias, y);
  return y;
}

// y, what the backward wants of its mean and deviation, and the running statistics afterwards.
Results batch_norm_of(const Call& call, bool training) {
  const Val x = call.math("input"), running_mean = call.math("running_mean"), running_var = call.math("running_var");
  if (x.count() == 0) return nothing();
  const Val eps = call.number("eps");
  if (!training) {
    const Val y = (x - per_channel(running_mean, x)) * per_channel(rsqrt(running_var + eps), x);
    const Val empty = full(call.builder(), x.dtype(), {0}, int64_t{0});
    return {scale_and_shift(call, y), empty, empty, running_mean, running_var};
  }
  const Ints dims = dims_but(x, 1);
  const Normalized n = normalize(x, dims, eps);
  const double count = static_cast<double>(x.count()) / static_cast<double>(x.size(1));
  const Val momentum = call.number("momentum"), channel_mean = reshape(n.mean, {x.size(1)});
  const Val unbiased = sum(square(x - n.mean), dims) / (count - 1);
  return {scale_and_shift(call, n.y), channel_mean, reshape(n.rstd, {x.size(1)}),
          running_mean * (1 - momentum) + channel_mean * momentum, running_var * (1 - momentum) + unbiased * momentum};
}

Results batch_norm(const Call& call) { return batch_norm_of(call, call.flag("training")); }

// These write the running statistics: they come first.
Results writing_batch_norm(const Call& call) {
  const Results r = batch_norm(call);
  if (r.values.empty()) return r;
  return {r.values[3], r.values[4], r.values[0], r.values[1], r.values[2]};
}
Results updating_batch_norm(const Call& call) {
  const Results r = batch_norm_of(call, true);
  if (r.values.empty()) return r;
  return {r.values[3], r.values[4], r.values[0], r.values[1], r.values[2], zeros_of(call).values[5]};
}

struct Names {
  const char *train, *deviation;
};
constexpr Names kOld = {"train", "save_invstd"}, kNew = {"update", "save_var"};

template <const Names& kNames>
Results batch_norm_backward(const Call& call) {
  const Val g = call.math("grad_out"), x = call.math("input"), weight = call.math("weight");
  if (x.count() == 0) return nothing();
  const bool train = call.flag(kNames.train);
  const Ints dims = dims_but(x, 1);
  const Val centre = per_channel(call.math(train ? "save_mean" : "running_mean"), x);
  const Val rstd = per_channel(train ? call.math(kNames.deviation) : rsqrt(call.math("running_var") + call.number("eps")), x);
  const Val x_hat = (x - centre) * rstd, scaled = weight ? g * per_channel(weight, x) : g;
  Val dx, dweight, dbias;
  if (call.wants(0)) dx = train ? normalize_backward(scaled, x_hat, rstd, dims) : scaled * rstd;
  if (call.wants(1)) dweight = sum(g * x_hat, dims);
  if (call.wants(2)) dbias = sum(g, dims);
  return {dx, dweight, dbias};
}

Results dropout_backward(const Call& call) {
  const Val g = call.math("grad_output");
  return g * cast(call.tensor("mask"), g.dtype()) * call.number("scale");
}

Results batch_norm_without_stats(const Call& call) {
  const Val x = call.math("input");
  if (x.count() == 0) return nothing();
  const Normalized n = normalize(x, dims_but(x, 1), call.number("eps"));
  return {scale_and_shift(call, n.y), reshape(n.mean, {x.size(1)}), reshape(n.rstd, {x.size(1)})};
}

Results rms_norm(const Call& call) {
  const Val x = call.math("input");
  const double epsilon = std::numeric_limits<float>::epsilon();
  const Val eps = call.given("eps") ? call.number("eps") : number(call.builder(), epsilon);
  const Val rstd = rsqrt(mean(square(x), last_dims(x, call.ints("normalized_shape").size()), true) + eps);
  Val y = x * rstd;
  if (const Val weight = call.math("weight")) y = y * weight;
  return {y, rstd};
}

// Over all dims but one, which stay with a size of 1.
Val sum_but(Val x, int64_t kept) {
  const Ints dims = dims_but(x, kept);
  return dims.empty() ? x : sum(x, dims, true);
}

Results weight_norm(const Call& call) {
  const Val v = call.math("v"), norms = sqrt(sum_but(square(v), call.integer("dim")));
  return {v * (call.math("g") / norms), norms};
}
Results weight_norm_backward(const Call& call) {
  const Val grad = call.math("grad_w"), v = call.math("saved_v"), g = call.math("saved_g"), norms = call.math("saved_norms");
  const Val along = sum_but(grad * v, call.integer("dim"));
  return {(grad - v * along / (norms * norms)) * (g / norms), along / norms};
}

constexpr Decomposition kRules[] = {
    {"aten::native_layer_norm", layer_norm},
    {"aten::native_layer_norm_backward", layer_norm_backward},
    {"aten::native_group_norm", group_norm},
    {"aten::native_group_norm_backward", group_norm_backward},
    {"aten::_native_batch_norm_legit_functional", batch_norm},
    {"aten::_native_batch_norm_legit", writing_batch_norm},
    {"aten::_batch_norm_with_update", updating_batch_norm},
    {"aten::native_batch_norm_backward", batch_norm_backward<kOld>},
    {"aten::batch_norm_backward", batch_norm_backward<kNew>},
    {"aten::native_dropout_backward", dropout_backward},
    {"aten::_native_batch_norm_legit.no_stats", batch_norm_without_stats},
    {"aten::_fused_rms_norm", rms_norm},
    {"aten::_weight_norm_interface", weight_norm},
    {"aten::_weight_norm_interface_backward", weight_norm_backward},
};

}  // namespace

std::span<const Decomposition> normalization() { return kRules; }

}  // namespace ltc::decompose
