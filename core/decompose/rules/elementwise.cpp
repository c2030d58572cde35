// Element-wise ops. 16-bit floats compute in float and are rounded once, at the end, as PyTorch's kernels do.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// ---- of one tensor

// f of `self` as it is.
template <Val (*kFormula)(Val)>
Results plain(const Call& call) {
  return kFormula(call.math("self"));
}

Val log2(Val x) { return log(x) * (1 / std::numbers::ln2); }
Val log10(Val x) { return log(x) * (1 / std::numbers::ln10); }
Val exp2(Val x) { return exp(x * std::numbers::ln2); }
Val asin(Val x) { return atan2(x, sqrt((1 - x) * (1 + x))); }
Val acos(Val x) { return atan2(sqrt((1 - x) * (1 + x)), x); }
// sinh and its inverse keep their precision near 0 through expm1 and log1p.
Val sinh(Val x) {
  const Val e = expm1(abs(x));
  const Val small = (e + e / (e + 1)) * 0.5, half = exp(abs(x) * 0.5);
  const Val large = half * 0.5 * half;  // where exp overflows and the result does not
  return sign(x) * where(abs(x) > 20.0, large, small);
}
Val cosh(Val x) {
  const Val half = exp(abs(x) * 0.5), e = exp(abs(x));
  return where(abs(x) > 20.0, half * 0.5 * half, (e + 1 / e) * 0.5);
}
Val asinh(Val x) {
  const Val a = abs(x), square_root = sqrt(a * a + 1);
  const Val small = log1p(a + a * a / (square_root + 1)), large = log(a) + std::numbers::ln2;
  return where(x == 0, x, sign(x) * where(a > 1e10, large, small));
}
Val acosh(Val x) { return where(x > 1e10, log(x) + std::numbers::ln2, log1p((x - 1) + sqrt((x - 1) * (x + 1)))); }
Val atanh(Val x) { return (log1p(x) - log1p(-x)) * 0.5; }
Val frac(Val x) { return x - trunc(x); }
Val is_inf(Val x) { return is_floating(x.dtype()) ? abs(x) == kInf : cast(zeros_like(x), DType::kBool); }
Val is_finite(Val x) { return is_floating(x.dtype()) ? abs(x) < kInf : cast(ones_like(x), DType::kBool); }
Val is_nan_of(Val x) { return is_floating(x.dtype()) ? is_nan(x) : cast(zeros_like(x), DType::kBool); }
Val is_positive_inf(Val x) { return is_floating(x.dtype()) ? x == kInf : cast(zeros_like(x), DType::kBool); }
Val is_negative_inf(Val x) { return is_floating(x.dtype()) ? x == -kInf : cast(zeros_like(x), DType::kBool); }
Val angle(Val x) { return where(is_nan(x), x, where(x < 0, full_like(x, std::numbers::pi), zeros_like(x))); }
Val same(Val x) { return x; }
Val sinc(Val x) {
  const Val y = x * std::numbers::pi;
  return where(x == 0, ones_like(x), sin(y) / y);
}

// Negative zero and negative NaN have the sign too: it is in the bits.
Val sign_bit(Val x) {
  if (!is_floating(x.dtype())) return x.dtype() == DType::kBool ? cast(zeros_like(x), DType::kBool) : x < 0;
  return sign_of_zero(x) < 0;
}

Results log_sigmoid_forward(const Call& call) {
  const Val x = call.math("self");
  const Val result = minimum(x, 0) - log1p(exp(-abs(x)));
  if (!call.wants(1)) return result;
  return {result, full(call.builder(), call.result(1).dtype, call.result(1).sizes, int64_t{0})};
}

Results nan_to_num(const Call& call) {
  const Val x = call.tensor("self");
  if (!is_floating(x.dtype())) return x;
  const double largest = x.dtype() == DType::kF64    ? std::numeric_limits<double>::max()
                         : x.dtype() == DType::kF16  ? 65504.0
                         : x.dtype() == DType::kBF16 ? 0x1.FEp127
                                                     : double{std::numeric_limits<float>::max()};
  const Val y = call.math("self");
  const auto or_else = [&](const char* name, double otherwise) {
    const Val given = call.number(name);
    return given ? given : number(call.builder(), otherwise);
  };
  const Val finite = where(is_nan(y), or_else("nan", 0), y);
  return where(y == kInf, or_else("posinf", largest), where(y == -kInf, or_else("neginf", -largest), finite));
}

Results logit(const Call& call) {
  Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  if (const Val eps = call.number("eps"))
    x = where(x < eps, cast(eps, x.dtype()), where(x > 1 - eps, cast(1 - eps, x.dtype()), x));
  return log(x / (1 - x));
}

Results logit_backward(const Call& call) {
  const Val g = call.math("grad_output"), x = call.math("self");
  const Val slope = g / (x * (1 - x));
  if (const Val eps = call.number("eps")) return where((x < eps) | (x > 1 - eps), zeros_like(x), slope);
  return where((x < 0) | (x > 1), full_like(x, std::numeric_limits<double>::quiet_NaN()), slope);
}

// ---- of two

// PyTorch's floor division: exact where the quotient is a whole number, with the sign of zero kept.
Val floor_quotient(Val a, Val b) {
  const DType dtype = promote(a, b);
  a = cast(a, dtype), b = cast(b, dtype);
  if (!is_floating(dtype)) {
    return exact_quotient(a - remainder(a, b), b);
  }
  const Val mod = fmod(a, b), quotient = (a - mod) / b;
  const Val adjusted = where((mod != 0) & ((b < 0) != (mod < 0)), quotient - 1, quotient);
  const Val below = floor(adjusted), rounded = where(adjusted - below > 0.5, below + 1, below);
  return where(b == 0, a / b, where(adjusted == 0, a / b * 0.0, rounded));
}

Val fmax(Val a, Val b) { return where(is_nan(a), b, where(is_nan(b), a, maximum(a, b))); }
Val fmin(Val a, Val b) { return where(is_nan(a), b, where(is_nan(b), a, minimum(a, b))); }

Val hypot(Val a, Val b) {
  const Val x = abs(a), y = abs(b), high = maximum(x, y), low = minimum(x, y);
  const Val ratio = where(high == 0, zeros_like(low), low / high);
  return where((x == kInf) | (y == kInf), full_like(high, kInf), high * sqrt(1 + ratio * ratio));
}

Val log_add_exp2(Val a, Val b) {
  const Val high = maximum(a, b);
  return where((abs(a) == kInf) & (a == b), a, high + log1p(exp2(-abs(a - b))) * (1 / std::numbers::ln2));
}

Val x_log_y(Val x, Val y) { return where(is_nan(y), y, where(x == 0, zeros_like(x * y), x * log(y))); }
Val x_log1p_y(Val x, Val y) { return where(is_nan(y), y, where(x == 0, zeros_like(x * y), x * log1p(y))); }
Val copy_sign(Val a, Val b) { return where(sign_bit(b), -abs(a), abs(a)); }
Val logical_and(Val a, Val b) { return ~logical_not(a) & ~logical_not(b); }
Val logical_or(Val a, Val b) { return ~logical_not(a) | ~logical_not(b); }
Val logical_xor(Val a, Val b) { return logical_not(a) ^ logical_not(b); }

// f of two arguments, tensors or numbers, in the type that the result is computed in.
template <Val (*kFormula)(Val, Val), bool kNumberFirst = false, bool kNumberSecond = false>
Results of_two(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val a = kNumberFirst ? call.number("self") : call.tensor("self");
  const Val b = kNumberSecond ? call.number("other") : call.tensor("other");
  return kFormula(cast(a, dtype), cast(b, dtype));
}

// ... in the type that the two have in common: the result is another (bool).
template <Val (*kFormula)(Val, Val), bool kNumberSecond = false>
Results of_common(const Call& call) {
  const Val a = call.tensor("self"), b = kNumberSecond ? call.number("other") : call.tensor("other");
  const DType dtype = math_dtype(promote(a, b));
  return kFormula(cast(a, dtype), cast(b, dtype));
}

template <bool kNumber>
Results subtract(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val a = cast(call.tensor("self"), dtype), b = cast(kNumber ? call.number("other") : call.tensor("other"), dtype);
  return call.is_constant("alpha", 1) ? a - b : a - b * cast(call.number("alpha"), dtype);
}

template <bool kNumber>
Results reversed_subtract(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val a = cast(call.tensor("self"), dtype), b = cast(kNumber ? call.number("other") : call.tensor("other"), dtype);
  return call.is_constant("alpha", 1) ? b - a : b - a * cast(call.number("alpha"), dtype);
}

Results add_number(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val b = call.is_constant("alpha", 1) ? call.number("other") : call.number("other") * call.number("alpha");
  return cast(call.tensor("self"), dtype) + cast(b, dtype);
}

template <bool kNumber>
Results divide_with_mode(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val a = cast(call.tensor("self"), dtype), b = cast(kNumber ? call.number("other") : call.tensor("other"), dtype);
  const std::string mode = call.string("rounding_mode");
  if (mode == "floor") return floor_quotient(a, b);
  if (mode != "trunc") return a / b;
  if (is_floating(dtype)) return trunc(a / b);
  return exact_quotient(a - fmod(a, b), b);
}

template <bool kNumberBase>
Results power(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  if (kNumberBase) return pow(cast(call.number("self"), dtype), cast(call.tensor("exponent"), dtype));
  const Val x = cast(call.tensor("self"), dtype);
  if (call.is_constant("exponent", 1)) return x;
  if (call.is_constant("exponent", 2)) return x * x;
  if (call.is_constant("exponent", 3)) return x * x * x;
  return pow(x, cast(call.number("exponent"), dtype));
}

Results heaviside(const Call& call) {
  const Val x = call.math("self"), at_zero = call.math("values"), step = where(x == 0, at_zero, cast(x > 0, at_zero.dtype()));
  return is_floating(x.dtype()) ? where(is_nan(x), x, step) : step;
}

// Rounds at a decimal place; a negative one lies before the point.
Results round_decimals(const Call& call) {
  const Val x = call.math("self");
  const int64_t decimals = call.integer("decimals");
  if (!is_floating(x.dtype())) return nothing();
  const double power = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals >= 0 ? round(x * power) / power : round(x / power) * power;
}

Results fill_with_number(const Call& call) {
  const Type& type = call.result();
  return expand(reshape(cast(call.number("value"), type.dtype), Ints(type.sizes.size(), 1)), type.sizes);
}
Results fill_with_tensor(const Call& call) {
  const Type& type = call.result();
  return expand(reshape(cast(call.tensor("value"), type.dtype), Ints(type.sizes.size(), 1)), type.sizes);
}

// ---- of three

// Limits that are NaN win, as does a value that is: maximum and minimum keep it.
template <Val (Call::*kLimit)(std::string_view) const>
Results clamp(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  Val x = cast(call.tensor("self"), dtype);
  if (call.given("min")) x = maximum(x, cast((call.*kLimit)("min"), dtype));
  if (call.given("max")) x = minimum(x, cast((call.*kLimit)("max"), dtype));
  return x;
}

template <Val (*kFormula)(Val, Val), Val (Call::*kLimit)(std::string_view) const>
Results clamp_one(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const char* name = kFormula == static_cast<Val (*)(Val, Val)>(maximum) ? "min" : "max";
  return kFormula(cast(call.tensor("self"), dtype), cast((call.*kLimit)(name), dtype));
}

template <Val (*kFormula)(Val, Val)>
Results add_scaled(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val a = cast(call.tensor("tensor1"), dtype), b = cast(call.tensor("tensor2"), dtype);
  const Val first = call.is_constant("value", 1) ? a : a * cast(call.number("value"), dtype);
  return cast(call.tensor("self"), dtype) + kFormula(first, b);
}

// From the nearer end, so that a weight of 1 gives `end` exactly.
template <Val (Call::*kWeight)(std::string_view) const>
Results lerp(const Call& call) {
  const Val a = call.math("self"), b = call.math("end"), w = cast((call.*kWeight)("weight"), a.dtype());
  return where(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w));
}

template <Val (Call::*kValue)(std::string_view) const>
Results masked_fill(const Call& call) {
  const Val x = call.tensor("self");
  return where(call.tensor("mask"), cast((call.*kValue)("value"), x.dtype()), x);
}

constexpr auto kTensor = &Call::tensor;
constexpr auto kNumber = &Call::number;

constexpr Decomposition kRules[] = {
    {"aten::reciprocal", real<reciprocal>},
    {"aten::rsqrt", real<rsqrt>},
    {"aten::sigmoid", real<sigmoid>},
    {"aten::log2", real<log2>},
    {"aten::log10", real<log10>},
    {"aten::exp2", real<exp2>},
    {"aten::asin", real<asin>},
    {"aten::acos", real<acos>},
    {"aten::sinh", real<sinh>},
    {"aten::cosh", real<cosh>},
    {"aten::asinh", real<asinh>},
    {"aten::acosh", real<acosh>},
    {"aten::atanh", real<atanh>},
    {"aten::sinc", real<sinc>},
    {"aten::frac", plain<frac>},
    {"aten::sgn", plain<sign>},
    {"aten::positive", plain<same>},
    {"aten::square", plain<square>},
    {"aten::isinf", plain<is_inf>},
    {"aten::isfinite", plain<is_finite>},
    {"aten::isnan", plain<is_nan_of>},
    {"aten::signbit", plain<sign_bit>},
    {"aten::logical_not", plain<logical_not>},
    {"aten::log_sigmoid_forward", log_sigmoid_forward},
    {"aten::nan_to_num", nan_to_num},
    {"aten::isposinf", plain<is_positive_inf>},
    {"aten::isneginf", plain<is_negative_inf>},
    {"aten::angle", real<angle>},
    {"aten::round.decimals", round_decimals},
    {"aten::fill.Scalar", fill_with_number},
    {"aten::fill.Tensor", fill_with_tensor},
    {"aten::logit", logit},
    {"aten::logit_backward", logit_backward},

    {"aten::sub.Tensor", subtract<false>},
    {"aten::sub.Scalar", subtract<true>},
    {"aten::rsub.Tensor", reversed_subtract<false>},
    {"aten::rsub.Scalar", reversed_subtract<true>},
    {"aten::add.Scalar", add_number},
    {"aten::mul.Scalar", of_two<product, false, true>},
    {"aten::div.Scalar", of_two<quotient, false, true>},
    {"aten::div.Tensor_mode", divide_with_mode<false>},
    {"aten::div.Scalar_mode", divide_with_mode<true>},
    {"aten::floor_divide", of_two<floor_quotient>},
    {"aten::floor_divide.Scalar", of_two<floor_quotient, false, true>},
    {"aten::remainder.Scalar", of_two<remainder, false, true>},
    {"aten::remainder.Scalar_Tensor", of_two<remainder, true, false>},
    {"aten::fmod.Scalar", of_two<fmod, false, true>},
    {"aten::pow.Tensor_Scalar", power<false>},
    {"aten::pow.Scalar", power<true>},
    {"aten::fmax", of_two<fmax>},
    {"aten::fmin", of_two<fmin>},
    {"aten::hypot", of_two<hypot>},
    {"aten::copysign.Tensor", of_two<copy_sign>},
    {"aten::heaviside", heaviside},
    {"aten::logaddexp", of_two<log_add_exp>},
    {"aten::logaddexp2", of_two<log_add_exp2>},
    {"aten::xlogy.Tensor", of_two<x_log_y>},
    {"aten::special_xlog1py", of_two<x_log1p_y>},
    {"aten::bitwise_and.Scalar", of_two<bit_and, false, true>},
    {"aten::bitwise_or.Scalar", of_two<bit_or, false, true>},
    {"aten::bitwise_xor.Scalar", of_two<bit_xor, false, true>},
    {"aten::logical_and", of_common<logical_and>},
    {"aten::logical_or", of_common<logical_or>},
    {"aten::logical_xor", of_common<logical_xor>},
    {"aten::ne.Tensor", of_common<not_equal>},
    {"aten::gt.Tensor", of_common<greater>},
    {"aten::ge.Tensor", of_common<greater_equal>},
    {"aten::eq.Scalar", of_common<equal, true>},
    {"aten::ne.Scalar", of_common<not_equal, true>},
    {"aten::lt.Scalar", of_common<less, true>},
    {"aten::le.Scalar", of_common<less_equal, true>},
    {"aten::gt.Scalar", of_common<greater, true>},
    {"aten::ge.Scalar", of_common<greater_equal, true>},

    {"aten::clamp", clamp<kNumber>},
    {"aten::clamp.Tensor", clamp<kTensor>},
    {"aten::clamp_min", clamp_one<maximum, kNumber>},
    {"aten::clamp_max", clamp_one<minimum, kNumber>},
    {"aten::clamp_min.Tensor", clamp_one<maximum, kTensor>},
    {"aten::clamp_max.Tensor", clamp_one<minimum, kTensor>},
    {"aten::addcmul", add_scaled<product>},
    {"aten::addcdiv", add_scaled<quotient>},
    {"aten::lerp.Scalar", lerp<kNumber>},
    {"aten::lerp.Tensor", lerp<kTensor>},
    {"aten::masked_fill.Scalar", masked_fill<kNumber>},
    {"aten::masked_fill.Tensor", masked_fill<kTensor>},
};

}  // namespace

std::span<const Decomposition> elementwise() { return kRules; }

}  // namespace ltc::decompose
