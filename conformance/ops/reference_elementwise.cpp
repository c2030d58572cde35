// Element by element.
#include <algorithm>
#include <cmath>

#include "conformance/ops/reference_call.h"

namespace ltc::conformance {
namespace {

template <Real (*kOp)(Real)>
void unary_real(const ReferenceCall& call) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  for (int64_t i = 0; i < out.count(); ++i) out.set_real(i, static_cast<double>(kOp(x.real(i))));
}

template <Real (*kReal)(Real), int64_t (*kInt)(int64_t)>
void unary(const ReferenceCall& call) {
  if (is_floating(call.output(0).dtype)) return unary_real<kReal>(call);
  for (int64_t i = 0; i < call.output(0).count(); ++i) call.output(0).set_integer(i, kInt(call.input(0).integer(i)));
}

Real neg(Real x) { return -x; }
Real sign(Real x) { return (x > 0) - (x < 0); }
Real to_even(Real x) { return std::nearbyint(x); }
Real square_root(Real x) { return std::sqrt(static_cast<double>(x)); }
int64_t neg(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }
int64_t abs(int64_t x) { return x < 0 ? neg(x) : x; }
int64_t sign(int64_t x) { return (x > 0) - (x < 0); }
int64_t same(int64_t x) { return x; }

void bitwise_not(const ReferenceCall& call) {
  const bool logical = call.output(0).dtype == DType::kBool;
  for (int64_t i = 0; i < call.output(0).count(); ++i) {
    const int64_t x = call.input(0).integer(i);
    call.output(0).set_integer(i, logical ? !x : ~x);
  }
}

// Calls body(element of the output, its elements of the operands), broadcasting from the right.
template <typename Body>
void for_each(const ReferenceCall& call, Body body) {
  Array& out = call.output(0);
  const Broadcast a(call.input(0).sizes, out.sizes), b(call.input(1).sizes, out.sizes);
  for (int64_t i = 0; i < out.count(); ++i) body(i, a.at(i), b.at(i));
}

template <Real (*kReal)(Real, Real), int64_t (*kInt)(int64_t, int64_t)>
void binary(const ReferenceCall& call) {
  const Array &a = call.input(0), &b = call.input(1);
  Array& out = call.output(0);
  for_each(call, [&](int64_t i, int64_t ia, int64_t ib) {
    if (is_floating(out.dtype)) {
      out.set_real(i, static_cast<double>(kReal(a.real(ia), b.real(ib))));
    } else {
      out.set_integer(i, kInt(a.integer(ia), b.integer(ib)));
    }
  });
}

template <bool (*kReal)(double, double), bool (*kInt)(int64_t, int64_t)>
void compare(const ReferenceCall& call) {
  const Array &a = call.input(0), &b = call.input(1);
  for_each(call, [&](int64_t i, int64_t ia, int64_t ib) {
    const bool holds = is_floating(a.dtype) ? kReal(a.real(ia), b.real(ib)) : kInt(a.integer(ia), b.integer(ib));
    call.output(0).set_integer(i, holds);
  });
}

Real div(Real a, Real b) { return static_cast<double>(a) / static_cast<double>(b); }
int64_t div(int64_t a, int64_t b) { return a / b; }
// The sign of the divisor, as Python's.
Real remainder(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t remainder(int64_t a, int64_t b) {
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
Real fmod(Real a, Real b) { return std::fmod(a, b); }
int64_t fmod(int64_t a, int64_t b) { return a % b; }
Real pow(Real a, Real b) { return std::pow(a, b); }
int64_t pow(int64_t a, int64_t b) {
  int64_t result = 1;
  for (; b > 0; --b) result = mul(result, a);
  return result;
}
Real minimum(Real a, Real b) { return std::isnan(a) || a < b ? a : b; }
int64_t minimum(int64_t a, int64_t b) { return std::min(a, b); }
Real atan2(Real a, Real b) { return std::atan2(a, b); }
int64_t bit_and(int64_t a, int64_t b) { return a & b; }
int64_t bit_or(int64_t a, int64_t b) { return a | b; }
int64_t bit_xor(int64_t a, int64_t b) { return a ^ b; }
int64_t shift_left(int64_t a, int64_t b) { return static_cast<int64_t>(bits(a) << b); }
int64_t shift_right(int64_t a, int64_t b) { return a >> b; }
template <typename T>
bool equal(T a, T b) {
  return a == b;
}
template <typename T>
bool less(T a, T b) {
  return a < b;
}
template <typename T>
bool less_equal(T a, T b) {
  return a <= b;
}

void where(const ReferenceCall& call) {
  Array& out = call.output(0);
  const Broadcast c(call.input(0).sizes, out.sizes), a(call.input(1).sizes, out.sizes), b(call.input(2).sizes, out.sizes);
  for (int64_t i = 0; i < out.count(); ++i) {
    const bool first = call.input(0).integer(c.at(i)) != 0;
    copy_element(first ? call.input(1) : call.input(2), first ? a.at(i) : b.at(i), out, i);
  }
}

void cast(const ReferenceCall& call) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  for (int64_t i = 0; i < out.count(); ++i) {
    if (is_floating(x.dtype)) {
      out.set_real(i, x.real(i));
    } else {
      out.set_integer(i, x.integer(i));
    }
  }
}

constexpr Reference kReferences[] = {
    {"aten::neg", unary<neg, neg>},
    {"aten::abs", unary<std::fabs, abs>},
    {"aten::sign", unary<sign, sign>},
    {"aten::floor", unary<std::floor, same>},
    {"aten::ceil", unary<std::ceil, same>},
    {"aten::trunc", unary<std::trunc, same>},
    {"aten::round", unary<to_even, same>},
    {"aten::exp", unary_real<std::exp>},
    {"aten::expm1", unary_real<std::expm1>},
    {"aten::log", unary_real<std::log>},
    {"aten::log1p", unary_real<std::log1p>},
    {"aten::sqrt", unary_real<square_root>},
    {"aten::sin", unary_real<std::sin>},
    {"aten::cos", unary_real<std::cos>},
    {"aten::tan", unary_real<std::tan>},
    {"aten::tanh", unary_real<std::tanh>},
    {"aten::atan", unary_real<std::atan>},
    {"aten::erf", unary_real<std::erf>},
    {"aten::lgamma", unary_real<std::lgamma>},
    {"aten::bitwise_not", bitwise_not},
    {"aten::add.Tensor", binary<add, add>},
    {"aten::mul.Tensor", binary<mul, mul>},
    {"aten::div.Tensor", binary<div, div>},
    {"aten::remainder.Tensor", binary<remainder, remainder>},
    {"aten::fmod.Tensor", binary<fmod, fmod>},
    {"aten::pow.Tensor_Tensor", binary<pow, pow>},
    {"aten::maximum", binary<maximum, maximum>},
    {"aten::minimum", binary<minimum, minimum>},
    {"aten::atan2", binary<atan2, add>},
    {"aten::bitwise_and.Tensor", binary<add, bit_and>},
    {"aten::bitwise_or.Tensor", binary<add, bit_or>},
    {"aten::bitwise_xor.Tensor", binary<add, bit_xor>},
    {"aten::bitwise_left_shift.Tensor", binary<add, shift_left>},
    {"aten::bitwise_right_shift.Tensor", binary<add, shift_right>},
    {"aten::eq.Tensor", compare<equal, equal>},
    {"aten::lt.Tensor", compare<less, less>},
    {"aten::le.Tensor", compare<less_equal, less_equal>},
    {"aten::where.self", where},
    {"aten::_to_copy", cast},
};

}  // namespace

std::span<const Reference> elementwise_references() { return kReferences; }

}  // namespace ltc::conformance
