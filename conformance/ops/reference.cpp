#include "conformance/ops/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "conformance/ops/reference_call.h"

namespace ltc::conformance {
namespace {

using Real = long double;

// ---- element by element

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

uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }
// Rounded once, as IEEE 754 has it: what is exact is compared bit by bit.
Real add(Real a, Real b) { return static_cast<double>(a) + static_cast<double>(b); }
int64_t add(int64_t a, int64_t b) { return static_cast<int64_t>(bits(a) + bits(b)); }
Real mul(Real a, Real b) { return static_cast<double>(a) * static_cast<double>(b); }
int64_t mul(int64_t a, int64_t b) { return static_cast<int64_t>(bits(a) * bits(b)); }
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
Real maximum(Real a, Real b) { return std::isnan(a) || a > b ? a : b; }
int64_t maximum(int64_t a, int64_t b) { return std::max(a, b); }
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

void same_bytes(const ReferenceCall& call) { call.output(0).bytes = call.input(0).bytes; }

// ---- movement: each element of the output comes from one place

void permute(const ReferenceCall& call) {
  const Sizes dims = call.ints("dims");
  const Sizes from = strides_of(call.input(0).sizes);
  call.gather_from(0, [&](const Sizes& at) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * from[static_cast<size_t>(dims[d])];
    return offset;
  });
}

void expand(const ReferenceCall& call) {
  const Broadcast x(call.input(0).sizes, call.output(0).sizes);
  for (int64_t i = 0; i < call.output(0).count(); ++i) copy_element(call.input(0), x.at(i), call.output(0), i);
}

void slice(const ReferenceCall& call) {
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  const Sizes from = strides_of(call.input(0).sizes);
  call.gather_from(0, [&](Sizes at) {
    at[dim] = call.integer("start", 0) + at[dim] * call.integer("step", 1);
    return dot(at, from);
  });
}

void pad(const ReferenceCall& call) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  const Sizes amounts = call.ints("pad");
  const Sizes from = strides_of(x.sizes);
  for (int64_t i = 0; i < out.count(); ++i) {
    Sizes at = position(i, out.sizes);
    bool inside = true;
    for (size_t back = 0; back * 2 < amounts.size(); ++back) {
      const size_t d = at.size() - 1 - back;
      at[d] -= amounts[back * 2];
      inside = inside && at[d] >= 0 && at[d] < x.sizes[d];
    }
    if (inside) {
      copy_element(x, dot(at, from), out, i);
    } else {
      call.store_number(out, i, "value", 1);
    }
  }
}

void cat(const ReferenceCall& call) {
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  Array& out = call.output(0);
  for (int64_t i = 0; i < out.count(); ++i) {
    Sizes at = position(i, out.sizes);
    size_t part = 0;
    while (at[dim] >= call.input(part).sizes[dim]) at[dim] -= call.input(part++).sizes[dim];
    copy_element(call.input(part), dot(at, strides_of(call.input(part).sizes)), out, i);
  }
}

void flip(const ReferenceCall& call) {
  const Array& x = call.input(0);
  const Sizes dims = call.ints("dims");
  call.gather_from(0, [&](Sizes at) {
    for (const int64_t dim : dims)
      at[static_cast<size_t>(dim)] = x.sizes[static_cast<size_t>(dim)] - 1 - at[static_cast<size_t>(dim)];
    return dot(at, strides_of(x.sizes));
  });
}

void arange(const ReferenceCall& call) {
  Array& out = call.output(0);
  for (int64_t i = 0; i < out.count(); ++i)
    out.set_real(i, call.real("start", 0) + static_cast<double>(i) * call.real("step", 1));
}

void full(const ReferenceCall& call) {
  for (int64_t i = 0; i < call.output(0).count(); ++i) call.store_number(call.output(0), i, "fill_value", 0);
}

int64_t strided_offset(const ReferenceCall& call, const Sizes& at) {
  return call.integer("storage_offset", 0) + dot(at, call.ints("stride"));
}

void as_strided(const ReferenceCall& call) {
  call.gather_from(0, [&](const Sizes& at) { return strided_offset(call, at); });
}

void as_strided_scatter(const ReferenceCall& call) {
  same_bytes(call);
  const Array& src = call.input(1);
  for (int64_t i = 0; i < src.count(); ++i) copy_element(src, i, call.output(0), strided_offset(call, position(i, src.sizes)));
}

// ---- reductions: calls body(element of the output, element of the input) for each element of the input

template <typename Body>
void reduce(const ReferenceCall& call, Body body) {
  const Array& x = call.input(0);
  const Sizes dims = call.dims("dim", x.sizes.size());
  Sizes kept = x.sizes;  // the output's, keepdim or not
  for (const int64_t dim : dims) kept[static_cast<size_t>(dim)] = 1;
  const Broadcast to(kept, x.sizes);
  for (int64_t i = 0; i < x.count(); ++i) body(to.at(i), i);
}

template <Real (*kReal)(Real, Real), int64_t (*kInt)(int64_t, int64_t)>
void fold(const ReferenceCall& call, std::optional<int64_t> start) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  const auto count = static_cast<size_t>(out.count());
  std::vector<Real> reals(count, static_cast<Real>(start.value_or(0)));
  std::vector<int64_t> ints(count, start.value_or(0));
  std::vector<bool> begun(count, start.has_value());
  reduce(call, [&](int64_t to, int64_t from) {
    const auto t = static_cast<size_t>(to);
    if (is_floating(x.dtype)) reals[t] = begun[t] ? kReal(reals[t], x.real(from)) : Real(x.real(from));
    if (!is_floating(x.dtype)) ints[t] = begun[t] ? kInt(ints[t], x.integer(from)) : x.integer(from);
    begun[t] = true;
  });
  for (size_t i = 0; i < count; ++i) {
    if (is_floating(x.dtype)) out.set_real(static_cast<int64_t>(i), static_cast<double>(reals[i]));
    if (!is_floating(x.dtype)) out.set_integer(static_cast<int64_t>(i), ints[i]);
  }
}

Real plus(Real a, Real b) { return a + b; }
Real times(Real a, Real b) { return a * b; }
void sum(const ReferenceCall& call) { fold<plus, add>(call, 0); }
void prod(const ReferenceCall& call) { fold<times, mul>(call, 1); }
void amax(const ReferenceCall& call) { fold<maximum, maximum>(call, std::nullopt); }

// NaN before all numbers, then the larger one.
bool greater_element(const Array& x, int64_t a, int64_t b) {
  if (!is_floating(x.dtype)) return x.integer(a) > x.integer(b);
  const double left = x.real(a), right = x.real(b);
  return std::isnan(left) ? !std::isnan(right) : left > right;
}

void argmax(const ReferenceCall& call) {
  const Array& x = call.input(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  std::vector<int64_t> best(static_cast<size_t>(call.output(0).count()), -1);
  reduce(call, [&](int64_t to, int64_t from) {
    int64_t& current = best[static_cast<size_t>(to)];
    if (current < 0 || greater_element(x, from, current)) current = from;
  });
  for (size_t i = 0; i < best.size(); ++i) call.output(0).set_integer(static_cast<int64_t>(i), position(best[i], x.sizes)[dim]);
}

void cumsum(const ReferenceCall& call) {
  const Array& x = call.input(0);
  Array& out = call.output(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  const int64_t stride = strides_of(x.sizes)[dim];
  std::vector<Real> sums(static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < x.count(); ++i) {
    const bool first = position(i, x.sizes)[dim] == 0;
    if (is_floating(x.dtype)) {
      const Real before = first ? Real(0) : sums[static_cast<size_t>(i - stride)];
      sums[static_cast<size_t>(i)] = before + x.real(i);
      out.set_real(i, static_cast<double>(sums[static_cast<size_t>(i)]));
    } else {
      out.set_integer(i, add(first ? 0 : out.integer(i - stride), x.integer(i)));
    }
  }
}

// ---- by index

void gather(const ReferenceCall& call) {
  const Array &x = call.input(0), &index = call.input(1);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  for (int64_t i = 0; i < index.count(); ++i) {
    Sizes at = position(i, index.sizes);
    at[dim] = index.integer(i);
    copy_element(x, dot(at, strides_of(x.sizes)), call.output(0), i);
  }
}

template <bool kAdds>
void scatter(const ReferenceCall& call) {
  same_bytes(call);
  const Array &index = call.input(1), &src = call.input(2);
  Array& out = call.output(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  for (int64_t i = 0; i < index.count(); ++i) {
    Sizes at = position(i, index.sizes);
    const int64_t from = dot(at, strides_of(src.sizes));
    at[dim] = index.integer(i);
    const int64_t to = dot(at, strides_of(out.sizes));
    if (!kAdds) copy_element(src, from, out, to);
    if (kAdds && is_floating(out.dtype)) out.set_real(to, out.real(to) + src.real(from));
    if (kAdds && !is_floating(out.dtype)) out.set_integer(to, add(out.integer(to), src.integer(from)));
  }
}

void sort(const ReferenceCall& call) {
  const Array& x = call.input(0);
  const auto dim = static_cast<size_t>(call.integer("dim", 0));
  const bool descending = call.integer("descending", 0) != 0;
  const int64_t stride = strides_of(x.sizes)[dim], size = x.sizes[dim];
  for (int64_t i = 0; i < x.count(); ++i) {
    if (position(i, x.sizes)[dim] != 0) continue;
    std::vector<int64_t> order(static_cast<size_t>(size));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      const int64_t left = i + a * stride, right = i + b * stride;
      return descending ? greater_element(x, left, right) : greater_element(x, right, left);
    });
    for (int64_t k = 0; k < size; ++k) {
      const int64_t from = order[static_cast<size_t>(k)];
      if (call.wants(0)) copy_element(x, i + from * stride, call.output(0), i + k * stride);
      if (call.wants(1)) call.output(1).set_integer(i + k * stride, from);
    }
  }
}

// ---- products

void bmm(const ReferenceCall& call) {
  const Array &a = call.input(0), &b = call.input(1);
  Array& out = call.output(0);
  const int64_t rows = a.sizes[1], inner = a.sizes[2], columns = b.sizes[2];
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t batch = i / (rows * columns), row = i / columns % rows, column = i % columns;
    Real real = 0;
    int64_t integer = 0;
    for (int64_t k = 0; k < inner; ++k) {
      const int64_t ia = (batch * rows + row) * inner + k, ib = (batch * inner + k) * columns + column;
      if (is_floating(a.dtype)) real += Real(a.real(ia)) * b.real(ib);
      if (!is_floating(a.dtype)) integer = add(integer, mul(a.integer(ia), b.integer(ib)));
    }
    if (is_floating(a.dtype)) out.set_real(i, static_cast<double>(real));
    if (!is_floating(a.dtype)) out.set_integer(i, integer);
  }
}

// Each element of the input meets each of the kernel; both kinds of convolution are the same loop with input and output swapped.
void convolution(const ReferenceCall& call) {
  const Array &x = call.input(0), &weight = call.input(1);
  const Array* bias = call.given(2) ? &call.input(2) : nullptr;
  Array& out = call.output(0);
  const bool transposed = call.integer("transposed", 0) != 0;
  const int64_t groups = call.integer("groups", 1);
  const Sizes stride = call.ints("stride"), padding = call.ints("padding"), dilation = call.ints("dilation");
  std::vector<Real> sums(static_cast<size_t>(out.count()), 0);
  const Array &narrow = transposed ? x : out, &wide = transposed ? out : x;
  const Sizes wide_strides = strides_of(wide.sizes), narrow_strides = strides_of(narrow.sizes);
  const int64_t first = weight.sizes[0] / groups, second = weight.sizes[1];  // channels of a group: narrow side, wide side
  for (int64_t batch = 0; batch < x.sizes[0]; ++batch) {
    for (int64_t w = 0; w < weight.count(); ++w) {
      const Sizes tap = position(w, weight.sizes);
      const int64_t group = tap[0] / first;
      const Sizes spatial(narrow.sizes.begin() + 2, narrow.sizes.end());
      for (int64_t s = 0; s < element_count(spatial); ++s) {
        const Sizes at = position(s, spatial);
        int64_t narrow_at = batch * narrow_strides[0] + tap[0] * narrow_strides[1];
        int64_t wide_at = batch * wide_strides[0] + (group * second + tap[1]) * wide_strides[1];
        bool inside = true;
        for (size_t d = 0; d < at.size(); ++d) {
          const int64_t place = at[d] * stride[d] - padding[d] + tap[d + 2] * dilation[d];
          inside = inside && place >= 0 && place < wide.sizes[d + 2];
          narrow_at += at[d] * narrow_strides[d + 2];
          wide_at += place * wide_strides[d + 2];
        }
        if (!inside) continue;
        const int64_t from = transposed ? narrow_at : wide_at, to = transposed ? wide_at : narrow_at;
        sums[static_cast<size_t>(to)] += Real(x.real(from)) * weight.real(w);
      }
    }
  }
  const int64_t channel = strides_of(out.sizes)[1];
  for (int64_t i = 0; i < out.count(); ++i) {
    const Real start = bias ? bias->real(i / channel % out.sizes[1]) : 0;
    out.set_real(i, static_cast<double>(start + sums[static_cast<size_t>(i)]));
  }
}

// ---- random: the definition in ltc/plugin.h

std::array<uint32_t, 4> philox_block(uint64_t seed, uint64_t counter) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0};
  auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9u, high += 0xBB67AE85u) {
    const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ high,
         static_cast<uint32_t>(a)};
  }
  return c;
}

void philox(const ReferenceCall& call) {
  Array& out = call.output(0);
  const auto seed = bits(call.number("seed", 0).i), offset = bits(call.number("offset", 1).i);
  const bool wide = out.dtype == DType::kI64 || out.dtype == DType::kF64;
  for (int64_t i = 0; i < out.count(); ++i) {
    const auto n = static_cast<uint64_t>(i);
    const auto words = philox_block(seed, offset + n / (wide ? 2 : 4));
    const uint32_t word = words[n % 4];
    const uint64_t pair = words[2 * (n % 2)] | uint64_t{words[2 * (n % 2) + 1]} << 32;
    switch (out.dtype) {
      case DType::kI32: out.set_integer(i, static_cast<int32_t>(word)); break;
      case DType::kF32: out.set_real(i, std::ldexp(static_cast<double>(word >> 8), -24)); break;
      case DType::kI64: out.set_integer(i, static_cast<int64_t>(pair)); break;
      default: out.set_real(i, std::ldexp(static_cast<double>(pair >> 11), -53));
    }
  }
}

using Reference = void (*)(const ReferenceCall&);

const std::unordered_map<std::string_view, Reference>& references() {
  static const auto* table = new std::unordered_map<std::string_view, Reference>{
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
      {"aten::view.dtype", same_bytes},
      {"aten::reshape", same_bytes},
      {"aten::permute", permute},
      {"aten::expand", expand},
      {"aten::slice.Tensor", slice},
      {"aten::constant_pad_nd", pad},
      {"aten::cat", cat},
      {"aten::flip", flip},
      {"aten::arange.start_step", arange},
      {"aten::full", full},
      {"aten::as_strided", as_strided},
      {"aten::as_strided_scatter", as_strided_scatter},
      {"aten::sum.dim_IntList", sum},
      {"aten::prod.dim_int", prod},
      {"aten::amax", amax},
      {"aten::argmax", argmax},
      {"aten::cumsum", cumsum},
      {"aten::gather", gather},
      {"aten::scatter.src", scatter<false>},
      {"aten::scatter_add", scatter<true>},
      {"aten::sort.stable", sort},
      {"aten::bmm", bmm},
      {"aten::convolution", convolution},
      {"ltc::philox", philox},
  };
  return *table;
}

}  // namespace

bool has_reference(std::string_view op) { return references().contains(op); }

std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs, const std::vector<Scalar>& scalars) {
  std::vector<Array> values(graph.types.size());
  size_t input = 0, scalar = 0;
  for (const Param& param : graph.params) {
    Array& value = values[param.value];
    if (!param.scalar) {
      value = inputs[input++];
      continue;
    }
    value = Array(graph.type(param.value).dtype, {});
    const size_t size = std::min(value.bytes.size(), sizeof(Scalar));
    std::memcpy(value.bytes.data(), &scalars[scalar++], size);
  }
  for (const Node& node : graph.nodes) {
    for (const ValueId out : node.outputs) {
      if (out != kNone) values[out] = Array(graph.type(out).dtype, graph.type(out).sizes);
    }
    const auto it = references().find(op_name(node.op));
    ensure(it != references().end(), "no reference for ", op_name(node.op));
    it->second(ReferenceCall(node, values));
  }
  std::vector<Array> results;
  for (const ValueId out : graph.outputs) results.push_back(values[out]);
  return results;
}

}  // namespace ltc::conformance
