// Chebyshev polynomials of a degree that is a tensor.
#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

// T(n) and U(n - 1), which follow from those of half the degree: one step per binary digit of n.
struct Pair {
  Val t, u;
};
Pair pair_of(Val x, Val n) {
  constexpr int kDigits = 31;
  Pair p{ones_like(x), zeros_like(x)};
  for (int digit = kDigits - 1; digit >= 0; --digit) {
    const Val u = p.t * p.u * 2, t = p.t * p.t * 2 - 1, is_odd = (n & (int64_t{1} << digit)) != 0;
    p = {where(is_odd, x * t + (x * x - 1) * u, t), where(is_odd, x * u + t, u)};
  }
  return p;
}

enum class Kind { kT, kU, kV, kW };

Val by_recurrence(Kind kind, Val x, Val n) {
  const Pair p = pair_of(x, n);
  const Val next = x * p.u + p.t;  // U(n)
  return kind == Kind::kT ? p.t : kind == Kind::kU ? next : kind == Kind::kV ? next - p.u : next + p.u;
}

// Inside (-1, 1), where high degrees lose less by it.
Val by_angle(Kind kind, Val x, Val n) {
  const Val angle = atan2(sqrt((1 - x) * (1 + x)), x), half = angle * 0.5, degree = cast(n, x.dtype());
  switch (kind) {
    case Kind::kT: return cos(degree * angle);
    case Kind::kU: return sin((degree + 1) * angle) / sin(angle);
    case Kind::kV: return cos((degree + 0.5) * angle) / cos(half);
    default: return sin((degree + 0.5) * angle) / sin(half);
  }
}

template <Kind kKind, bool kShifted>
Results chebyshev_polynomial(const Call& call) {
  constexpr int kLowDegree = 6;
  const Type& type = call.result();
  Val x = expand(cast(call.tensor("x"), math_dtype(type.dtype)), type.sizes);
  if (kShifted) x = x + x - 1;
  const Val n = expand(cast(call.tensor("n"), DType::kI64), type.sizes);
  const Val value = where((abs(x) < 1) & (n > kLowDegree), by_angle(kKind, x, n), by_recurrence(kKind, x, n));
  return where(n < 0, zeros_like(x), value);
}

constexpr Decomposition kRules[] = {
    {"aten::special_chebyshev_polynomial_t", chebyshev_polynomial<Kind::kT, false>},
    {"aten::special_chebyshev_polynomial_u", chebyshev_polynomial<Kind::kU, false>},
    {"aten::special_chebyshev_polynomial_v", chebyshev_polynomial<Kind::kV, false>},
    {"aten::special_chebyshev_polynomial_w", chebyshev_polynomial<Kind::kW, false>},
    {"aten::special_shifted_chebyshev_polynomial_t", chebyshev_polynomial<Kind::kT, true>},
    {"aten::special_shifted_chebyshev_polynomial_u", chebyshev_polynomial<Kind::kU, true>},
    {"aten::special_shifted_chebyshev_polynomial_v", chebyshev_polynomial<Kind::kV, true>},
    {"aten::special_shifted_chebyshev_polynomial_w", chebyshev_polynomial<Kind::kW, true>},
};

}  // namespace

std::span<const Decomposition> polynomials() { return kRules; }

}  // namespace ltc::decompose
