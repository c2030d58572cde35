// Ops that make each element from the elements at its place.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

Values to_copy(Call& call) { return {cast(call.m, call.in(0), call.type().dtype)}; }

// A complex number is 64 bits, with the real part in the lower ones.
Values complex_as_bits(Call& call) {
  Module& m = call.m;
  const auto part = [&](const char* name) { return m.bitcast(m.op(name, call.inputs, {LTC_F32, call.type().sizes}), LTC_U32); };
  return {m.bitcast(m.eval("or(ui64(x),shift_left(ui64(y),32))", {part("real"), part("imag")}), LTC_I64)};
}
Values bits_as_complex(Call& call) {
  Module& m = call.m;
  const Value bits = m.bitcast(call.in(0), LTC_U64);
  const auto part = [&](const char* formula) { return m.bitcast(m.eval(formula, {bits}), LTC_F32); };
  return {m.op("complex", {part("ui32(x)"), part("ui32(shift_right_logical(x,32))")}, call.type())};
}

Values view_dtype(Call& call) {
  Module& m = call.m;
  const Type& type = call.type();
  Value x = call.in(0);
  if (x.type.dtype == type.dtype) return {x};
  if (x.type.dtype == LTC_BOOL) x = m.convert(x, LTC_U8);
  Type bytes{type.dtype == LTC_BOOL ? ltc_dtype{LTC_U8} : type.dtype, type.sizes};
  const int from = element(x.type.dtype).bits, to = element(bytes.dtype).bits;
  Sizes split = from < to ? type.sizes : x.type.sizes;  // several narrow elements are one wide one: a dim of their own
  if (from != to) split.push_back(from < to ? to / from : from / to);
  if (from < to) x = m.reshape(x, split);
  if (from > to) bytes.sizes = split;
  x = m.reshape(x.type.dtype == bytes.dtype ? x : m.op("bitcast_convert", {x}, bytes), type.sizes);
  return {type.dtype == LTC_BOOL ? m.eval("NE(x,0)", {x}) : x};
}

constexpr Row kRows[] = {
    {"aten::neg", "T:T", "fi", "negate(x)"},
    {"aten::abs", "T:T", "f", "abs(x)"},
    {"aten::abs", "T:T", "i", "select(LT(x,0),negate(x),x)"},
    {"aten::sign", "T:T", "fi", "subtract(T(GT(x,0)),T(LT(x,0)))"},
    {"aten::floor", "T:T", "f", "floor(x)"},
    {"aten::ceil", "T:T", "f", "ceil(x)"},
    {"aten::trunc", "T:T", "f", "select(LT(x,0),ceil(x),floor(x))"},
    {"aten::round", "T:T", "f", "round_nearest_even(x)"},
    {"aten::exp", "T:T", "f", "exponential(x)"},
    {"aten::expm1", "T:T", "f", "exponential_minus_one(x)"},
    {"aten::log", "T:T", "f", "log(x)"},
    {"aten::log1p", "T:T", "f", "log_plus_one(x)"},
    {"aten::sqrt", "T:T", "f", "sqrt(x)"},
    {"aten::sin", "T:T", "f", "sine(x)"},
    {"aten::cos", "T:T", "f", "cosine(x)"},
    {"aten::tan", "T:T", "f", "tan(x)"},
    {"aten::tanh", "T:T", "f", "tanh(x)"},
    // The second operand is 1, but no constant: XLA of 2026 makes wrong code for one with vectors of 512 bits.
    {"aten::atan", "T:T", "f", "atan2(x,select(EQ(x,x),1,x))"},
    {"aten::erf", "T:T", "f", "chlo.erf(x)"},
    {"aten::lgamma", "T:T", "f", "chlo.lgamma(x)"},
    {"aten::bitwise_not", "T:T", "ib", "not(x)"},
    {"aten::add.Tensor", "TT:T", "fi", "add(x,y)"},
    {"aten::mul.Tensor", "TT:T", "fi", "multiply(x,y)"},
    // The divisor is no constant: XLA would multiply by its reciprocal, which rounds differently.
    {"aten::div.Tensor", "TT:T", "f", "divide(x,select(EQ(x,x),y,x))"},
    {"aten::remainder.Tensor", "TT:T", "fi", "remainder(x,y);select(and(NE(LT(z,0),LT(y,0)),NE(z,0)),add(z,y),z)"},
    {"aten::fmod.Tensor", "TT:T", "fi", "remainder(x,y)"},
    {"aten::pow.Tensor_Tensor", "TT:T", "f", "power(x,y)"},
    // Only 1 and -1 have negative powers with a whole part.
    {"aten::pow.Tensor_Tensor", "TT:T", "i",
     "select(EQ(x,-1),subtract(1,multiply(2,and(y,1))),0);select(LT(y,0),select(EQ(x,1),1,z),power(x,maximum(y,0)))"},
    {"aten::maximum", "TT:T", "fi", "maximum(x,y)"},
    {"aten::minimum", "TT:T", "fi", "minimum(x,y)"},
    {"aten::maximum", "TT:T", "b", "or(x,y)"},
    {"aten::minimum", "TT:T", "b", "and(x,y)"},
    {"aten::atan2", "TT:T", "f", "atan2(x,y)"},
    {"aten::bitwise_and.Tensor", "TT:T", "ib", "and(x,y)"},
    {"aten::bitwise_or.Tensor", "TT:T", "ib", "or(x,y)"},
    {"aten::bitwise_xor.Tensor", "TT:T", "ib", "xor(x,y)"},
    {"aten::bitwise_left_shift.Tensor", "TT:T", "i", "or(LT(y,0),GT(y,top(y)));select(z,0,shift_left(x,select(z,0,y)))"},
    {"aten::bitwise_right_shift.Tensor", "TT:T", "u",
     "or(LT(y,0),GT(y,top(y)));select(z,0,shift_right_logical(x,select(z,0,y)))"},
    {"aten::bitwise_right_shift.Tensor", "TT:T", "i", "or(LT(y,0),GT(y,top(y)));shift_right_arithmetic(x,select(z,top(y),y))"},
    {"aten::eq.Tensor", "TT:b", "fib", "EQ(x,y)"},
    {"aten::lt.Tensor", "TT:b", "fib", "LT(x,y)"},
    {"aten::le.Tensor", "TT:b", "fib", "LE(x,y)"},
    {"aten::where.self", "bTT:T", "fibh", "select(x,y,z)"},
    {"aten::_to_copy", "N:A", "fibh", {}, to_copy},
    {"aten::view.dtype", "A:A", "fibh", {}, view_dtype},
    {"aten::view.dtype", "c:i", {}, {}, complex_as_bits},
    {"aten::view.dtype", "i:c", {}, {}, bits_as_complex},
};

}  // namespace

std::span<const Row> elementwise_ops() { return kRows; }

// To halves by way of F32, and to unsigned integers modulo 2^bits, where StableHLO saturates.
Value cast(Module& m, const Value& value, ltc_dtype dtype) {
  if (value.type.dtype == dtype) return value;
  if (dtype == LTC_BOOL) return m.eval("NE(x,0)", {value});
  const bool wraps = is_kind(dtype, "u") && is_kind(value.type.dtype, "f");
  return m.convert(is_kind(dtype, "h") ? m.convert(value, LTC_F32) : wraps ? m.convert(value, LTC_I64) : value, dtype);
}

}  // namespace ltc::pjrt
