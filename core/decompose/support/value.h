// Values while a decomposition writes nodes: what the minimal opset can do, with PyTorch's type promotion and broadcasting, so
// that rules read as formulas.
//
// A Val belongs to one Builder and is valid as long as that is. Errors: a rule that mixes sizes which do not broadcast is a
// defect of the rule: ltc::Error(kInternal) with both.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace ltc::decompose {

using Ints = std::vector<int64_t>;

class Builder;

struct Val {
  Builder* builder = nullptr;
  ValueId id = kNone;
  bool weak = false;  // a Python number: takes the dtype of what it meets where the kind of number allows

  Val() = default;
  Val(Builder* owner, ValueId value, bool is_weak = false) : builder(owner), id(value), weak(is_weak) {}
  explicit operator bool() const { return id != kNone; }

  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Ints& sizes() const { return type().sizes; }
  int64_t size(int64_t dim) const { return sizes()[static_cast<size_t>(wrap(dim))]; }
  int64_t rank() const { return static_cast<int64_t>(sizes().size()); }
  int64_t count() const { return type().element_count; }
  int64_t wrap(int64_t dim) const { return dim < 0 ? dim + std::max<int64_t>(rank(), 1) : dim; }
};

using ltc::promote;
DType promote(const Val& a, const Val& b);
// The type in which PyTorch's CPU kernels compute: float for the 16-bit types.
DType math_dtype(DType dtype);

Ints broadcast(std::span<const int64_t> a, std::span<const int64_t> b);
Ints all_dims(const Val& x);
Ints dims_but(const Val& x, int64_t kept);
// `dims` wrapped, sorted; all of them if empty.
Ints wrap_dims(const Val& x, const Ints& dims);

// ---- the minimal opset: ATen's ops of these names in canonical form, operands of one dtype

Val full(Builder& b, DType dtype, Ints sizes, double value);
Val full(Builder& b, DType dtype, Ints sizes, int64_t value);
Val number(Builder& b, double value);   // weak, rank 0
Val number(Builder& b, int64_t value);  // weak, rank 0
Val iota(Builder& b, int64_t count);    // 0, 1, ...: I64

Val cast(Val x, DType dtype);
Val bitcast(Val x, DType dtype);
Val unary(const char* op, Val x);
Val arithmetic(const char* op, Val a, Val b);  // result of the promoted dtype
Val compare(const char* op, Val a, Val b);     // result bool

Val neg(Val x);
Val abs(Val x);
Val sign(Val x);
Val floor(Val x);
Val ceil(Val x);
Val trunc(Val x);
Val round(Val x);
Val exp(Val x);
Val expm1(Val x);
Val log(Val x);
Val log1p(Val x);
Val sqrt(Val x);
Val sin(Val x);
Val cos(Val x);
Val tan(Val x);
Val tanh(Val x);
Val atan(Val x);
Val erf(Val x);
Val lgamma(Val x);
Val logical_not(Val x);  // bool of x == 0

Val remainder(Val a, Val b);
Val fmod(Val a, Val b);
Val pow(Val a, Val b);
Val maximum(Val a, Val b);
Val minimum(Val a, Val b);
Val atan2(Val a, Val b);
Val where(Val condition, Val a, Val b);

Val reshape(Val x, Ints sizes);
Val permute(Val x, Ints dims);
Val expand(Val x, Ints sizes);  // broadcasting from the right
Val slice(Val x, int64_t dim, int64_t begin, int64_t end, int64_t step = 1);
Val pad(Val x, Ints pad, Val value);  // as constant_pad_nd: from the last dim, before and after; a number as it entered the graph
Val pad(Val x, Ints pad, double value);
Val cat(std::vector<Val> parts, int64_t dim);
Val flip(Val x, Ints dims);
Val as_strided(Val x, Ints sizes, Ints strides, int64_t offset);

Val sum(Val x, Ints dims, bool keepdim = false);  // dtype of x
Val prod(Val x, int64_t dim, bool keepdim = false);
Val amax(Val x, Ints dims, bool keepdim = false);
Val argmax(Val x, int64_t dim, bool keepdim = false);
Val cumsum(Val x, int64_t dim);

Val gather(Val x, int64_t dim, Val index);
Val scatter(Val x, int64_t dim, Val index, Val from);
Val scatter_add(Val x, int64_t dim, Val index, Val from);
struct Sorted {
  Val values, indices;
};
Sorted sort(Val x, int64_t dim, bool descending);

Val bmm(Val a, Val b);
struct Convolution {
  Ints stride, padding, dilation;
  bool transposed = false;
  Ints output_padding;
  int64_t groups = 1;
};
Val convolution(Val x, Val weight, const Convolution& how);

// ---- what is made of it and used all over

Val operator+(Val a, Val b);
Val operator-(Val a, Val b);
Val operator*(Val a, Val b);
Val operator/(Val a, Val b);
Val operator-(Val x);
Val operator==(Val a, Val b);
Val operator!=(Val a, Val b);
Val operator<(Val a, Val b);
Val operator<=(Val a, Val b);
Val operator>(Val a, Val b);
Val operator>=(Val a, Val b);
Val operator&(Val a, Val b);
Val operator|(Val a, Val b);
Val operator^(Val a, Val b);
Val operator~(Val x);

// The same by name, for tables of rules.
inline Val product(Val a, Val b) { return a * b; }
inline Val quotient(Val a, Val b) { return a / b; }
inline Val equal(Val a, Val b) { return a == b; }
inline Val not_equal(Val a, Val b) { return a != b; }
inline Val less(Val a, Val b) { return a < b; }
inline Val less_equal(Val a, Val b) { return a <= b; }
inline Val greater(Val a, Val b) { return a > b; }
inline Val greater_equal(Val a, Val b) { return a >= b; }
inline Val bit_and(Val a, Val b) { return a & b; }
inline Val bit_or(Val a, Val b) { return a | b; }
inline Val bit_xor(Val a, Val b) { return a ^ b; }

// Numbers beside values: weak, as Python's.
#define LTC_WITH_NUMBERS(name)                                                      \
  inline Val name(Val a, double b) { return name(a, number(*a.builder, b)); }       \
  inline Val name(double a, Val b) { return name(number(*b.builder, a), b); }       \
  inline Val name(Val a, int b) { return name(a, number(*a.builder, int64_t{b})); } \
  inline Val name(int a, Val b) { return name(number(*b.builder, int64_t{a}), b); } \
  inline Val name(Val a, int64_t b) { return name(a, number(*a.builder, b)); }      \
  inline Val name(int64_t a, Val b) { return name(number(*b.builder, a), b); }
LTC_WITH_NUMBERS(operator+)
LTC_WITH_NUMBERS(operator-)
LTC_WITH_NUMBERS(operator*)
LTC_WITH_NUMBERS(operator/)
LTC_WITH_NUMBERS(operator==)
LTC_WITH_NUMBERS(operator!=)
LTC_WITH_NUMBERS(operator<)
LTC_WITH_NUMBERS(operator<=)
LTC_WITH_NUMBERS(operator>)
LTC_WITH_NUMBERS(operator>=)
LTC_WITH_NUMBERS(operator&)
LTC_WITH_NUMBERS(operator|)
LTC_WITH_NUMBERS(maximum)
LTC_WITH_NUMBERS(minimum)
LTC_WITH_NUMBERS(remainder)
LTC_WITH_NUMBERS(fmod)
LTC_WITH_NUMBERS(pow)
#undef LTC_WITH_NUMBERS
inline Val where(Val c, Val a, double b) { return where(c, a, number(*a.builder, b)); }
inline Val where(Val c, double a, Val b) { return where(c, number(*b.builder, a), b); }
inline Val where(Val c, Val a, int b) { return where(c, a, number(*a.builder, int64_t{b})); }
inline Val where(Val c, int a, Val b) { return where(c, number(*b.builder, int64_t{a}), b); }

double lowest_of(DType dtype);  // what every other value is above; of floats an infinity
Val zeros_like(Val x);
Val ones_like(Val x);
Val full_like(Val x, double value);
Val is_nan(Val x);
Val sigmoid(Val x);
Val reciprocal(Val x);
Val rsqrt(Val x);
Val exact_quotient(Val a, Val b);  // of integers of which b divides a; b is not 0
Val square(Val x);
Val log_add_exp(Val a, Val b);
Val mean(Val x, Ints dims, bool keepdim = false);
Val softmax(Val x, int64_t dim);
// The norm of order p, `order` where that is a constant.
Val p_norm(Val x, const Ints& dims, bool keepdim, std::optional<double> order, Val p);
Val amin(Val x, Ints dims, bool keepdim = false);
Val any(Val x, Ints dims, bool keepdim = false);
Val all(Val x, Ints dims, bool keepdim = false);
Val transpose(Val x, int64_t a, int64_t b);
Val unsqueeze(Val x, int64_t dim);
Val squeeze(Val x, int64_t dim);
Val as_vector(Val x);                             // of rank 1 where it has rank 0
Val select(Val x, int64_t dim, int64_t index);    // the dim goes
Val matmul2(Val a, Val b);                        // of matrices, through bmm
Val apply_along(Val x, int64_t dim, Val matrix);  // of sizes [new, old]
Val sum_to(Val x, const Ints& sizes);             // undoes a broadcast
// Elements of a dim by a vector of places; and the reverse, where what goes to one place is added.
Val take_along(Val x, int64_t dim, Val places);
Val put_along(Val x, int64_t dim, Val places, int64_t size);
// A vector as an index along a dim, as wide as gather and scatter want it.
Val index_for(Val places, int64_t dim, const Ints& sizes);
Val sign_of_zero(Val x);  // negative where the sign bit is set
// Zeros of `size` along the dim, with x at begin, begin + step, ...: what slicing so would give x.
Val unslice(Val x, int64_t dim, int64_t begin, int64_t step, int64_t size);
Val index_along(Val x, int64_t dim, int64_t count);  // iota shaped to broadcast along one dim of x's rank

}  // namespace ltc::decompose
