// Formulas that many rules use, made of the minimal opset.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/decompose/support/builder.h"

namespace ltc::decompose {
namespace {
constexpr double kInf = std::numeric_limits<double>::infinity();
}

Val operator+(Val a, Val b) { return arithmetic("aten::add.Tensor", a, b); }
Val operator-(Val a, Val b) { return a + (b.dtype() == DType::kBool ? neg(cast(b, promote(a, b))) : neg(b)); }
Val operator*(Val a, Val b) { return arithmetic("aten::mul.Tensor", a, b); }
Val operator-(Val x) { return neg(x); }

// True division: of integers in float.
Val operator/(Val a, Val b) {
  const DType dtype = promote(a, b);
  if (is_floating(dtype) || is_complex(dtype)) return arithmetic("aten::div.Tensor", a, b);
  return arithmetic("aten::div.Tensor", cast(a, DType::kF32), cast(b, DType::kF32));
}

Val operator==(Val a, Val b) { return compare("aten::eq.Tensor", a, b); }
Val operator<(Val a, Val b) { return compare("aten::lt.Tensor", a, b); }
Val operator<=(Val a, Val b) { return compare("aten::le.Tensor", a, b); }
Val operator!=(Val a, Val b) { return ~(a == b); }
Val operator>(Val a, Val b) { return b < a; }
Val operator>=(Val a, Val b) { return b <= a; }
Val operator&(Val a, Val b) { return arithmetic("aten::bitwise_and.Tensor", a, b); }
Val operator|(Val a, Val b) { return arithmetic("aten::bitwise_or.Tensor", a, b); }
Val operator^(Val a, Val b) { return arithmetic("aten::bitwise_xor.Tensor", a, b); }
Val operator~(Val x) { return unary("aten::bitwise_not", x); }

double lowest_of(DType dtype) {
  if (is_floating(dtype)) return -kInf;
  const bool has_sign = dtype != DType::kU8 && dtype != DType::kBool;
  return has_sign ? -std::ldexp(1.0, static_cast<int>(8 * dtype_size_bytes(dtype)) - 1) : 0;
}

Val full_like(Val x, double value) { return full(*x.builder, x.dtype(), x.sizes(), value); }
Val zeros_like(Val x) { return full(*x.builder, x.dtype(), x.sizes(), int64_t{0}); }
Val ones_like(Val x) { return full(*x.builder, x.dtype(), x.sizes(), int64_t{1}); }

Val is_nan(Val x) { return x != x; }
Val sigmoid(Val x) { return 1 / (1 + exp(-x)); }
Val reciprocal(Val x) { return 1 / x; }
Val rsqrt(Val x) { return 1 / sqrt(x); }
Val square(Val x) { return x * x; }
Val log_add_exp(Val a, Val b) {
  const Val high = maximum(a, b);
  return where((abs(a) == kInf) & (a == b), a, high + log1p(exp(-abs(a - b))));
}

// Division modulo 2^bits: powers of 2 are shifted out of both, and what is left of b, being odd, has an inverse, which each of
// Newton's steps gives twice as many bits of.
Val exact_quotient(Val a, Val b) {
  const DType dtype = promote(a, b);
  a = cast(a, dtype), b = cast(b, dtype);
  const auto bits = static_cast<int64_t>(8 * dtype_size_bytes(dtype));
  const auto is_multiple = [&](int64_t power) { return (b & ((int64_t{1} << power) - 1)) == 0; };
  for (int64_t power = bits / 2; power > 0; power /= 2) {
    const Val shift = where(is_multiple(power), full_like(b, static_cast<double>(power)), zeros_like(b));
    a = arithmetic("aten::bitwise_right_shift.Tensor", a, shift);
    b = arithmetic("aten::bitwise_right_shift.Tensor", b, shift);
  }
  Val inverse = b;  // right in 3 bits
  for (int64_t right = 3; right < bits; right *= 2) inverse = inverse * (2 - b * inverse);
  return a * inverse;
}

Val mean(Val x, Ints dims, bool keepdim) {
  int64_t count = 1;
  for (const int64_t dim : wrap_dims(x, dims)) count *= x.size(dim);
  return sum(x, dims, keepdim) / static_cast<double>(count);
}

Val softmax(Val x, int64_t dim) {
  const Val e = exp(x - amax(x, {dim}, true));
  return e / sum(e, {dim}, true);
}

Val p_norm(Val x, const Ints& dims, bool keepdim, std::optional<double> order, Val p) {
  x = abs(x);
  if (order == 2.0) return sqrt(sum(x * x, dims, keepdim));
  if (order == 1.0) return sum(x, dims, keepdim);
  if (order == 0.0) return sum(cast(x != 0, x.dtype()), dims, keepdim);
  if (order == kInf) return x.rank() ? amax(x, dims, keepdim) : x;
  if (order == -kInf) return x.rank() ? amin(x, dims, keepdim) : x;
  p = cast(p, x.dtype());
  return pow(sum(pow(x, p), dims, keepdim), 1 / p);
}

// The reversed order of numbers: negation, but for integers, whose smallest has no opposite, the complement.
Val amin(Val x, Ints dims, bool keepdim) {
  const auto turn = [](Val v) { return is_floating(v.dtype()) ? -v : ~v; };
  return turn(amax(turn(x), std::move(dims), keepdim));
}

Val any(Val x, Ints dims, bool keepdim) {
  const Val truth = x.dtype() == DType::kBool ? x : x != 0;
  if (x.rank() == 0) return truth;
  if (x.count() == 0) return cast(sum(cast(truth, DType::kI64), std::move(dims), keepdim), DType::kBool);
  return cast(amax(cast(truth, DType::kU8), std::move(dims), keepdim), DType::kBool);
}
Val all(Val x, Ints dims, bool keepdim) { return ~any(logical_not(x), std::move(dims), keepdim); }

Val transpose(Val x, int64_t a, int64_t b) {
  if (x.rank() == 0) return x;
  Ints dims = all_dims(x);
  std::swap(dims[static_cast<size_t>(x.wrap(a))], dims[static_cast<size_t>(x.wrap(b))]);
  return permute(x, dims);
}

Val unsqueeze(Val x, int64_t dim) {
  Ints sizes = x.sizes();
  sizes.insert(sizes.begin() + (dim < 0 ? dim + x.rank() + 1 : dim), 1);
  return reshape(x, sizes);
}

Val squeeze(Val x, int64_t dim) {
  if (x.rank() == 0 || x.size(dim) != 1) return x;
  Ints sizes = x.sizes();
  sizes.erase(sizes.begin() + x.wrap(dim));
  return reshape(x, sizes);
}

Val as_vector(Val x) { return x.rank() == 0 ? reshape(x, {1}) : x; }

Val select(Val x, int64_t dim, int64_t index) {
  if (index < 0) index += x.size(dim);
  return squeeze(slice(x, dim, index, index + 1), dim);
}

Val matmul2(Val a, Val b) { return squeeze(bmm(unsqueeze(a, 0), unsqueeze(b, 0)), 0); }

Val apply_along(Val x, int64_t dim, Val matrix) {
  dim = x.wrap(dim);
  const Val last = transpose(x, dim, -1);
  Ints sizes = last.sizes();
  sizes.back() = matrix.size(0);
  const Val flat = reshape(last, {x.count() / std::max<int64_t>(x.size(dim), 1), x.size(dim)});
  return transpose(reshape(matmul2(flat, transpose(matrix, 0, 1)), sizes), dim, -1);
}

Val sum_to(Val x, const Ints& sizes) {
  const auto extra = static_cast<size_t>(x.rank()) - sizes.size();
  Ints dims;
  for (size_t i = 0; i < static_cast<size_t>(x.rank()); ++i) {
    if (i < extra || (sizes[i - extra] == 1 && x.sizes()[i] != 1)) dims.push_back(static_cast<int64_t>(i));
  }
  return dims.empty() ? x : reshape(sum(x, dims), sizes);
}

Val index_for(Val places, int64_t dim, const Ints& sizes) {
  Ints shape(sizes.size(), 1), wide = sizes;
  shape[static_cast<size_t>(dim)] = wide[static_cast<size_t>(dim)] = places.count();
  return expand(reshape(places, shape), wide);
}
Val take_along(Val x, int64_t dim, Val places) { return gather(x, dim, index_for(places, x.wrap(dim), x.sizes())); }
Val put_along(Val x, int64_t dim, Val places, int64_t size) {
  Ints sizes = x.sizes();
  sizes[static_cast<size_t>(x.wrap(dim))] = size;
  return scatter_add(full(*x.builder, x.dtype(), sizes, int64_t{0}), dim, index_for(places, x.wrap(dim), x.sizes()), x);
}

Val sign_of_zero(Val x) { return bitcast(x, x.dtype() == DType::kF64 ? DType::kI64 : DType::kI32); }

Val unslice(Val x, int64_t dim, int64_t begin, int64_t step, int64_t size) {
  dim = x.wrap(dim);
  const int64_t pieces = x.size(dim);
  Ints sizes = x.sizes(), around(static_cast<size_t>(2 * (x.rank() - dim)), 0);
  sizes[static_cast<size_t>(dim)] = size;
  if (pieces == 0) return full(*x.builder, x.dtype(), sizes, int64_t{0});
  if (step > 1) {  // each element with step - 1 zeros behind it, but for the last
    Ints apart = x.sizes(), behind(static_cast<size_t>(2 * (x.rank() - dim)), 0), joined = x.sizes();
    apart.insert(apart.begin() + dim + 1, 1);
    behind.back() = step - 1;
    joined[static_cast<size_t>(dim)] = pieces * step;
    x = slice(reshape(pad(reshape(x, apart), behind, 0.0), joined), dim, 0, (pieces - 1) * step + 1);
  }
  around[around.size() - 2] = begin, around[around.size() - 1] = size - begin - x.size(dim);
  return pad(x, around, 0.0);
}

Val index_along(Val x, int64_t dim, int64_t count) {
  Ints sizes(static_cast<size_t>(std::max<int64_t>(x.rank(), 1)), 1);
  sizes[static_cast<size_t>(x.wrap(dim))] = count;
  return reshape(iota(*x.builder, count), sizes);
}

}  // namespace ltc::decompose
