#include "core/decompose/rules/pairs.h"

#include <algorithm>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {

Val as_bits(Val x) { return bitcast(x, DType::kI64); }
Val from_bits(Val x) { return bitcast(x, DType::kC64); }

Pair parts(Val x) {
  if (!is_complex(x.dtype())) {
    const Val re = cast(x, DType::kF32);
    return {re, zeros_like(re)};
  }
  const Val both = bitcast(unsqueeze(as_bits(x), -1), DType::kF32);
  return {select(both, -1, 0), select(both, -1, 1)};
}

Val complex(Pair x) {
  const Val both = cat({unsqueeze(x.re, -1), unsqueeze(x.im, -1)}, -1);
  return from_bits(squeeze(bitcast(both, DType::kI64), -1));
}

namespace {

Results move(const Call& call) { return call.with_bits(); }

// Padding with 0 is padding with the bits of 0.
Results pad_with_zeros(const Call& call) { return call.is_constant("value", 0) ? call.with_bits() : nothing(); }

Results fill(const Call& call) {
  const Ints& sizes = call.result().sizes;
  const Val value = call.number("fill_value");
  if (is_complex(value.dtype())) return nothing();
  const Val re = expand(cast(value, DType::kF32), sizes);
  return complex({re, zeros_like(re)});
}

template <bool kSubtracts>
Results add(const Call& call) {
  if (!call.is_constant("alpha", 1)) return nothing();
  const Pair a = parts(call.tensor("self")), b = parts(call.tensor("other"));
  return kSubtracts ? complex({a.re - b.re, a.im - b.im}) : complex({a.re + b.re, a.im + b.im});
}

Pair times(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

Results multiply(const Call& call) { return complex(times(parts(call.tensor("self")), parts(call.tensor("other")))); }
template <bool kDivides>
Results scale(const Call& call) {
  const Val by = call.number("other");
  if (is_complex(by.dtype())) return nothing();
  const Pair x = parts(call.tensor("self"));
  return kDivides ? complex({x.re / by, x.im / by}) : complex({x.re * by, x.im * by});
}

Results negate(const Call& call) {
  const Pair x = parts(call.tensor("self"));
  return complex({-x.re, -x.im});
}
Results conjugate(const Call& call) {
  const Pair x = parts(call.tensor("self"));
  return complex({x.re, -x.im});
}

// Scaled, so that squares do not overflow.
Val magnitude(Pair x) {
  const Val a = abs(x.re), b = abs(x.im), high = maximum(a, b), low = minimum(a, b);
  const Val share = where(high == 0, zeros_like(low), low / high);
  return high * sqrt(1 + share * share);
}
Results absolute(const Call& call) { return magnitude(parts(call.tensor("self"))); }
Results direction(const Call& call) {
  const Pair x = parts(call.tensor("self"));
  const Val size = magnitude(x), divisor = where(size == 0, ones_like(size), size);
  return complex({x.re / divisor, x.im / divisor});
}
Results phase(const Call& call) {
  const Pair x = parts(call.tensor("self"));
  return atan2(x.im, x.re);
}

Results from_parts(const Call& call) {
  const Ints& sizes = call.result().sizes;
  return complex({expand(call.tensor("real"), sizes), expand(call.tensor("imag"), sizes)});
}
Results from_polar(const Call& call) {
  const Ints& sizes = call.result().sizes;
  const Val size = expand(call.tensor("abs"), sizes), angle = expand(call.tensor("angle"), sizes);
  return complex({size * cos(angle), size * sin(angle)});
}

Results convert(const Call& call) {
  const Val x = call.tensor("self");
  if (x.weak) return nothing();
  return is_complex(call.result().dtype) ? Results(complex(parts(x))) : Results(parts(x).re);
}

// Between a complex number and its two parts, which the last dim holds.
Results reinterpret(const Call& call) {
  const Val x = call.tensor("self");
  const Ints& sizes = call.result().sizes;
  if (x.dtype() == DType::kC64 && call.result().dtype == DType::kF32)
    return reshape(bitcast(unsqueeze(as_bits(x), -1), DType::kF32), sizes);
  if (x.dtype() == DType::kF32) return from_bits(reshape(bitcast(x, DType::kI64), sizes));
  return nothing();
}

constexpr Decomposition kRules[] = {
    {"aten::clone", move},
    {"aten::reshape", move},
    {"aten::permute", move},
    {"aten::expand", move},
    {"aten::slice.Tensor", move},
    {"aten::cat", move},
    {"aten::stack", move},
    {"aten::flip", move},
    {"ltc::roll", move},
    {"aten::as_strided", move},
    {"aten::as_strided_scatter", move},
    {"ltc::as_strided", move},
    {"ltc::as_strided_scatter", move},
    {"aten::gather", move},
    {"aten::index_select", move},
    {"aten::where.self", move},
    {"aten::select_backward", move},
    {"aten::slice_backward", move},
    {"aten::constant_pad_nd", pad_with_zeros},
    {"aten::full", fill},
    {"aten::zeros",
     [](const Call& call) -> Results { return from_bits(full(call.builder(), DType::kI64, call.result().sizes, int64_t{0})); }},
    {"aten::add.Tensor", add<false>},
    {"aten::sub.Tensor", add<true>},
    {"aten::mul.Tensor", multiply},
    {"aten::mul.Scalar", scale<false>},
    {"aten::div.Scalar", scale<true>},
    {"aten::neg", negate},
    {"aten::conj_physical", conjugate},
    {"aten::_conj_physical", conjugate},
    {"aten::abs", absolute},
    {"aten::sgn", direction},
    {"aten::angle", phase},
    {"aten::complex", from_parts},
    {"aten::polar", from_polar},
    {"aten::_to_copy", convert},
    {"aten::view.dtype", reinterpret},
};

}  // namespace

Rule find_complex_rule(std::string_view op) {
  for (const auto rules : {std::span<const Decomposition>(kRules), fourier_transforms()}) {
    const auto it = std::ranges::find(rules, op, &Decomposition::op);
    if (it != rules.end()) return it->rule;
  }
  return nullptr;
}

}  // namespace ltc::decompose
