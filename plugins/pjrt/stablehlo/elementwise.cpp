// Ops that make each element from the elements at its place.
#include "pjrt/stablehlo/ops.h"

namespace ltc::pjrt {
namespace {

Value same_size(const Call& call, size_t i) { return call.module.broadcast(call.inputs[i], call.type().sizes); }

// ---- one op of StableHLO

Values unary(Call& call) { return {call.module.op(call.row.op, call.inputs)}; }
Values binary(Call& call) { return {call.module.op(call.row.op, {same_size(call, 0), same_size(call, 1)})}; }
// `op`: the direction.
Values comparison(Call& call) { return {call.module.compare(same_size(call, 0), same_size(call, 1), call.row.op)}; }
Values where(Call& call) { return {call.module.select(same_size(call, 0), same_size(call, 1), same_size(call, 2))}; }

// ---- one operand

Values absolute(Call& call) { return is_unsigned(call.type().dtype) ? call.inputs : unary(call); }

Values sign(Call& call) {
  Module& m = call.module;
  const Value &x = call.inputs[0], zero = m.like(x, 0);
  const Value above = m.convert(m.compare(x, zero, "GT"), x.type.dtype);
  if (is_unsigned(x.type.dtype)) return {above};
  return {m.op("subtract", {above, m.convert(m.compare(x, zero, "LT"), x.type.dtype)})};
}

Values trunc(Call& call) {
  Module& m = call.module;
  const Value& x = call.inputs[0];
  return {m.select(m.compare(x, m.like(x, 0), "LT"), m.op("ceil", {x}), m.op("floor", {x}))};
}

// The second operand is 1, but no constant: XLA of 2026 makes wrong code for one with vectors of 512 bits.
Values atan(Call& call) {
  Module& m = call.module;
  const Value& x = call.inputs[0];
  return {m.op("atan2", {x, m.select(m.compare(x, x, "EQ"), m.like(x, 1), x)})};
}

// ---- two operands

Value is_negative(Module& m, const Value& x) { return m.compare(x, m.like(x, 0), "LT"); }

Values remainder(Call& call) {
  Module& m = call.module;
  const Value x = same_size(call, 0), y = same_size(call, 1), rest = m.op("remainder", {x, y});
  if (is_unsigned(x.type.dtype)) return {rest};
  const Value differ = m.compare(is_negative(m, rest), is_negative(m, y), "NE");
  const Value wrong = m.op("and", {differ, m.compare(rest, m.like(rest, 0), "NE")});
  return {m.select(wrong, m.op("add", {rest, y}), rest)};
}

// Negative powers of integers: 1 and -1 have one, of all others the whole part is 0.
Values power(Call& call) {
  Module& m = call.module;
  const Value x = same_size(call, 0), y = same_size(call, 1);
  if (is_float(x.type.dtype) || is_unsigned(x.type.dtype)) return {m.op("power", {x, y})};
  const Value zero = m.like(x, 0), one = m.like(x, 1), minus_one = m.like(x, -1);
  const Value is_odd = m.compare(m.op("and", {y, one}), zero, "NE");
  const Value of_minus_one = m.select(m.compare(x, minus_one, "EQ"), m.select(is_odd, minus_one, one), zero);
  const Value whole_part = m.select(m.compare(x, one, "EQ"), one, of_minus_one);
  return {m.select(is_negative(m, y), whole_part, m.op("power", {x, m.op("maximum", {y, zero})}))};
}

// `op` is maximum or minimum; of BOOL or, and.
Values extremum(Call& call) {
  if (call.type().dtype != LTC_BOOL) return binary(call);
  return {call.module.op(call.row.op == "maximum" ? "or" : "and", {same_size(call, 0), same_size(call, 1)})};
}

Values shift(Call& call) {
  Module& m = call.module;
  const Value x = same_size(call, 0), y = same_size(call, 1), zero = m.like(x, 0);
  const int64_t bits = bits_of(x.type.dtype);
  const Value too_far = m.op("or", {m.compare(y, zero, "LT"), m.compare(y, m.like(y, bits), "GE")});
  const bool keeps_sign = call.row.op == "right" && !is_unsigned(x.type.dtype);
  if (keeps_sign) return {m.op("shift_right_arithmetic", {x, m.select(too_far, m.like(y, bits - 1), y)})};
  const char* name = call.row.op == "right" ? "shift_right_logical" : "shift_left";
  return {m.select(too_far, zero, m.op(name, {x, m.select(too_far, zero, y)}))};
}

// ---- other types

Values to_copy(Call& call) { return {cast(call.module, call.inputs[0], call.type().dtype)}; }

// A complex number as 64 bits, the real part in the lower ones, and back.
Value complex_as_bits(Module& m, const Value& x) {
  const auto part = [&](const char* name) {
    const Value bits = m.bitcast(m.op(name, {x}, {LTC_F32, x.type.sizes}), LTC_U32);
    return m.convert(bits, LTC_U64);
  };
  const Value imaginary = part("imag"), high = m.op("shift_left", {imaginary, m.like(imaginary, 32)});
  return m.bitcast(m.op("or", {high, part("real")}), LTC_I64);
}
Value bits_as_complex(Module& m, const Value& x) {
  const Value bits = m.bitcast(x, LTC_U64), high = m.op("shift_right_logical", {bits, m.like(bits, 32)});
  const auto part = [&](const Value& half) { return m.bitcast(m.convert(half, LTC_U32), LTC_F32); };
  return m.op("complex", {part(bits), part(high)}, {LTC_C64, x.type.sizes});
}

Values view_dtype(Call& call) {
  Module& m = call.module;
  Value x = call.inputs[0];
  const Type& type = call.type();
  if (x.type.dtype == type.dtype) return {x};
  if (x.type.dtype == LTC_C64) return {complex_as_bits(m, x)};
  if (type.dtype == LTC_C64) return {bits_as_complex(m, x)};
  if (x.type.dtype == LTC_BOOL) x = m.convert(x, LTC_U8);
  Type bytes{type.dtype == LTC_BOOL ? ltc_dtype{LTC_U8} : type.dtype, type.sizes};
  const int64_t from = bits_of(x.type.dtype), to = bits_of(bytes.dtype);
  if (from < to) {  // several elements become one: they are a dim of their own
    Sizes sizes = type.sizes;
    sizes.push_back(to / from);
    x = m.reshape(x, sizes);
  } else if (from > to) {
    bytes.sizes = x.type.sizes;
    bytes.sizes.push_back(from / to);
  }
  x = x.type.dtype == bytes.dtype ? x : m.op("bitcast_convert", {x}, bytes);
  x = m.reshape(x, type.sizes);
  return {type.dtype == LTC_BOOL ? m.compare(x, m.like(x, 0), "NE") : x};
}

constexpr Row kRows[] = {
    {"aten::neg", "T:T", "fi", "", unary, "negate"},
    {"aten::abs", "T:T", "fi", "", absolute, "abs"},
    {"aten::sign", "T:T", "fi", "", sign},
    {"aten::floor", "T:T", "f", "", unary, "floor"},
    {"aten::ceil", "T:T", "f", "", unary, "ceil"},
    {"aten::trunc", "T:T", "f", "", trunc},
    {"aten::round", "T:T", "f", "", unary, "round_nearest_even"},
    {"aten::exp", "T:T", "f", "", unary, "exponential"},
    {"aten::expm1", "T:T", "f", "", unary, "exponential_minus_one"},
    {"aten::log", "T:T", "f", "", unary, "log"},
    {"aten::log1p", "T:T", "f", "", unary, "log_plus_one"},
    {"aten::sqrt", "T:T", "f", "", unary, "sqrt"},
    {"aten::sin", "T:T", "f", "", unary, "sine"},
    {"aten::cos", "T:T", "f", "", unary, "cosine"},
    {"aten::tan", "T:T", "f", "", unary, "tan"},
    {"aten::tanh", "T:T", "f", "", unary, "tanh"},
    {"aten::atan", "T:T", "f", "", atan},
    {"aten::erf", "T:T", "f", "", unary, "chlo.erf"},
    {"aten::lgamma", "T:T", "f", "", unary, "chlo.lgamma"},
    {"aten::bitwise_not", "T:T", "ib", "", unary, "not"},
    {"aten::add.Tensor", "TT:T", "fi", "alpha:1?", binary, "add"},
    {"aten::mul.Tensor", "TT:T", "fi", "", binary, "multiply"},
    {"aten::div.Tensor", "TT:T", "f", "", binary, "divide"},
    {"aten::remainder.Tensor", "TT:T", "fi", "", remainder},
    {"aten::fmod.Tensor", "TT:T", "fi", "", binary, "remainder"},
    {"aten::pow.Tensor_Tensor", "TT:T", "fi", "", power},
    {"aten::maximum", "TT:T", "fib", "", extremum, "maximum"},
    {"aten::minimum", "TT:T", "fib", "", extremum, "minimum"},
    {"aten::atan2", "TT:T", "f", "", binary, "atan2"},
    {"aten::bitwise_and.Tensor", "TT:T", "ib", "", binary, "and"},
    {"aten::bitwise_or.Tensor", "TT:T", "ib", "", binary, "or"},
    {"aten::bitwise_xor.Tensor", "TT:T", "ib", "", binary, "xor"},
    {"aten::bitwise_left_shift.Tensor", "TT:T", "i", "", shift, "left"},
    {"aten::bitwise_right_shift.Tensor", "TT:T", "i", "", shift, "right"},
    {"aten::eq.Tensor", "TT:b", "fib", "", comparison, "EQ"},
    {"aten::lt.Tensor", "TT:b", "fib", "", comparison, "LT"},
    {"aten::le.Tensor", "TT:b", "fib", "", comparison, "LE"},
    {"aten::where.self", "bTT:T", "fibh", "", where},
    {"aten::_to_copy", "N:A", "fibh", "dtype:dn?", to_copy},
    {"aten::view.dtype", "A:A", "fibhc", "dtype:d", view_dtype},
};

}  // namespace

std::span<const Row> elementwise_ops() { return kRows; }

Value cast(Module& m, const Value& value, ltc_dtype dtype) {
  if (value.type.dtype == dtype) return value;
  if (dtype == LTC_BOOL) return m.compare(value, m.like(value, 0), "NE");
  const bool is_half = dtype == LTC_F16 || dtype == LTC_BF16;
  const bool wraps = is_unsigned(dtype) && is_float(value.type.dtype);  // StableHLO would saturate
  return m.convert(is_half ? m.convert(value, LTC_F32) : wraps ? m.convert(value, LTC_I64) : value, dtype);
}

}  // namespace ltc::pjrt
