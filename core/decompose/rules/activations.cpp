// Activations and their gradients.
#include <numbers>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

const double kSqrtHalf = 1 / std::numbers::sqrt2;
constexpr double kGeluBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
constexpr double kGeluKappa = 0.044715;

Val softplus_of(Val x) { return maximum(x, 0) + log1p(exp(-abs(x))); }

// min(max(x, 0), ...): maximum keeps NaN.
Results relu(const Call& call) { return maximum(call.tensor("self"), 0); }

Results threshold(const Call& call) {
  const Val x = call.math("self");
  return where(x <= cast(call.number("threshold"), x.dtype()), cast(call.number("value"), x.dtype()), x);
}
Results threshold_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  return where(x <= cast(call.number("threshold"), x.dtype()), zeros_like(g), g);
}

Results silu(const Call& call) {
  const Val x = call.math("self");
  return x / (1 + exp(-x));
}
Results silu_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self"), s = sigmoid(x);
  return g * s * (1 + x * (1 - s));
}

Results gelu(const Call& call) {
  const Val x = call.math("self");
  if (call.string("approximate") != "tanh") return x * 0.5 * (1 + erf(x * kSqrtHalf));
  return x * 0.5 * (1 + tanh((x + x * x * x * kGeluKappa) * kGeluBeta));
}
Results gelu_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  if (call.string("approximate") != "tanh") {
    const Val cdf = (1 + erf(x * kSqrtHalf)) * 0.5;
    const Val pdf = exp(x * x * -0.5) * (std::numbers::inv_sqrtpi * kSqrtHalf);
    return g * (cdf + x * pdf);
  }
  const Val t = tanh((x + x * x * x * kGeluKappa) * kGeluBeta);
  const Val slope = (1 - t * t) * (1 + x * x * (3 * kGeluKappa)) * kGeluBeta;
  return g * ((1 + t) * 0.5 + x * 0.5 * slope);
}

Results elu(const Call& call) {
  const Val x = call.math("self");
  const Val negative = expm1(x * call.number("input_scale")) * call.number("alpha");
  return where(x > 0, x, negative) * call.number("scale");
}
Results elu_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self_or_result");
  const Val alpha = call.number("alpha"), scale = call.number("scale"), input_scale = call.number("input_scale");
  const Val negative =
      call.flag("is_result") ? g * input_scale * (x + alpha * scale) : g * input_scale * scale * alpha * exp(x * input_scale);
  return where(x <= 0, negative, g * scale);
}

Results leaky_relu(const Call& call) {
  const Val x = call.math("self");
  return where(x > 0, x, x * call.number("negative_slope"));
}
Results leaky_relu_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  return where(x > 0, g, g * call.number("negative_slope"));
}

Results prelu(const Call& call) {
  const Val x = call.math("self"), weight = call.math("weight");
  return where(x > 0, x, x * weight);
}
Results prelu_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self"), weight = call.math("weight");
  return {where(x > 0, g, g * weight), where(x > 0, zeros_like(g), x * g)};
}

Results softplus(const Call& call) {
  const Val x = call.math("self"), beta = call.number("beta"), scaled = x * beta;
  return where(scaled > call.number("threshold"), x, softplus_of(scaled) / beta);
}
Results softplus_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self"), scaled = x * call.number("beta");
  return where(scaled > call.number("threshold"), g, g * sigmoid(scaled));
}

Results hardtanh(const Call& call) {
  const Val x = call.math("self");
  return minimum(maximum(x, cast(call.number("min_val"), x.dtype())), cast(call.number("max_val"), x.dtype()));
}
Results hardtanh_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  return where((x <= call.number("min_val")) | (x >= call.number("max_val")), zeros_like(g), g);
}

Val relu6(Val x) { return minimum(maximum(x, 0), 6); }
Results hardsigmoid(const Call& call) { return relu6(call.math("self") + 3) / 6; }
Results hardsigmoid_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  return where((x > -3) & (x < 3), g / 6, zeros_like(g));
}
Results hardswish(const Call& call) {
  const Val x = call.math("self");
  return x * relu6(x + 3) / 6;
}
Results hardswish_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  return where(x <= -3, zeros_like(g), where(x < 3, g * (x / 3 + 0.5), g));
}

Results hardshrink(const Call& call) {
  const Val x = call.math("self"), lambda = call.number("lambd");
  return where((x >= -lambda) & (x <= lambda), zeros_like(x), x);
}
Results softshrink(const Call& call) {
  const Val x = call.math("self"), lambda = call.number("lambd");
  return where(x > lambda, x - lambda, where(x < -lambda, x + lambda, x * 0));
}
template <const char* kGradient>
Results shrink_backward(const Call& call) {
  const Val g = call.math(kGradient), x = call.math("self"), lambda = call.number("lambd");
  return where((x >= -lambda) & (x <= lambda), zeros_like(g), g);
}
constexpr char kGradOut[] = "grad_out", kGradOutput[] = "grad_output";

Results mish(const Call& call) {
  const Val x = call.math("self");
  return x * tanh(softplus_of(x));
}
Results mish_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self"), t = tanh(softplus_of(x));
  return g * (t + x * sigmoid(x) * (1 - t * t));
}

Results glu(const Call& call) {
  const Val x = call.math("self");
  const int64_t dim = x.wrap(call.integer("dim")), half = x.size(dim) / 2;
  return slice(x, dim, 0, half) * sigmoid(slice(x, dim, half, 2 * half));
}
Results glu_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  const int64_t dim = x.wrap(call.integer("dim")), half = x.size(dim) / 2;
  const Val a = slice(x, dim, 0, half), s = sigmoid(slice(x, dim, half, 2 * half));
  return cat({g * s, g * a * s * (1 - s)}, dim);
}

Results sigmoid_backward(const Call& call) {
  const Val g = call.math("grad_output"), y = call.math("output");
  return g * (1 - y) * y;
}
Results tanh_backward(const Call& call) {
  const Val g = call.math("grad_output"), y = call.math("output");
  return g * (1 - y * y);
}
Results log_sigmoid_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  return g * sigmoid(-x);
}

constexpr Decomposition kRules[] = {
    {"aten::relu", relu},
    {"aten::threshold", threshold},
    {"aten::threshold_backward", threshold_backward},
    {"aten::silu", silu},
    {"aten::silu_backward", silu_backward},
    {"aten::gelu", gelu},
    {"aten::gelu_backward", gelu_backward},
    {"aten::elu", elu},
    {"aten::elu_backward", elu_backward},
    {"aten::leaky_relu", leaky_relu},
    {"aten::leaky_relu_backward", leaky_relu_backward},
    {"aten::_prelu_kernel", prelu},
    {"aten::_prelu_kernel_backward", prelu_backward},
    {"aten::softplus", softplus},
    {"aten::softplus_backward", softplus_backward},
    {"aten::hardtanh", hardtanh},
    {"aten::hardtanh_backward", hardtanh_backward},
    {"aten::hardsigmoid", hardsigmoid},
    {"aten::hardsigmoid_backward", hardsigmoid_backward},
    {"aten::hardswish", hardswish},
    {"aten::hardswish_backward", hardswish_backward},
    {"aten::hardshrink", hardshrink},
    {"aten::hardshrink_backward", shrink_backward<kGradOut>},
    {"aten::softshrink", softshrink},
    {"aten::softshrink_backward", shrink_backward<kGradOutput>},
    {"aten::mish", mish},
    {"aten::mish_backward", mish_backward},
    {"aten::glu", glu},
    {"aten::glu_backward", glu_backward},
    {"aten::sigmoid_backward", sigmoid_backward},
    {"aten::tanh_backward", tanh_backward},
    {"aten::log_sigmoid_backward", log_sigmoid_backward},
};

}  // namespace

std::span<const Decomposition> activations() { return kRules; }

}  // namespace ltc::decompose
