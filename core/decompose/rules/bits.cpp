// Rules of ops on bits and whole numbers.
#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

// Where things lie in a float of IEEE 754.
struct Format {
  DType bits;
  int64_t mantissa, exponent_mask, bias;  // mantissa: number of bits
};
Format format_of(DType dtype) {
  return dtype == DType::kF64 ? Format{DType::kI64, 52, 0x7FF, 1022} : Format{DType::kI32, 23, 0xFF, 126};
}

Val shifted_right(Val x, int64_t by) {
  return arithmetic("aten::bitwise_right_shift.Tensor", x, cast(number(*x.builder, by), x.dtype()));
}

// x = mantissa * 2^exponent, the mantissa in [0.5, 1). Subnormal numbers are brought into the range of normal ones first.
Results mantissa_and_exponent(const Call& call) {
  const Val given = call.math("self");
  const Format f = format_of(given.dtype());
  const double lift = f.mantissa == 52 ? 0x1p60 : 0x1p30;
  const double least = f.mantissa == 52 ? 0x1p-1022 : 0x1p-126;
  const Val is_small = abs(given) < least, x = where(is_small, given * lift, given);
  const Val bits = bitcast(x, f.bits), field = shifted_right(bits, f.mantissa) & f.exponent_mask;
  const Val mantissa = bitcast((bits & ~(f.exponent_mask << f.mantissa)) | (f.bias << f.mantissa), given.dtype());
  const Val none = (given == 0) | (field == f.exponent_mask);  // 0, infinite, NaN
  const Val exponent = field - f.bias - where(is_small, full_like(field, f.mantissa == 52 ? 60 : 30), zeros_like(field));
  return {where(none, given, mantissa), cast(where(none, zeros_like(exponent), exponent), DType::kI32)};
}

// The bits of floats of one sign are ordered as these are.
Results next_after(const Call& call) {
  const Val a = call.math("self"), b = call.math("other");
  const Format f = format_of(a.dtype());
  const Val bits = bitcast(a, f.bits);
  const Val away = (b > a) == (a > 0), next = bits + where(away, ones_like(bits), full_like(bits, -1));
  const Val least = bitcast(ones_like(bits), a.dtype());  // the smallest above 0
  const Val step = where(a == 0, where(b > 0, least, -least), bitcast(next, a.dtype()));
  return where(is_nan(a) | is_nan(b), a + b, where(a == b, b, step));
}

// Euclid; after so many steps nothing is left of the smaller one, whatever the numbers (Lame).
Val greatest_divisor(Val a, Val b) {
  const int steps = static_cast<int>(12 * dtype_size_bytes(a.dtype())) + 1;
  a = abs(a), b = abs(b);
  for (int i = 0; i < steps; ++i) {
    const Val done = b == 0, rest = remainder(a, where(done, ones_like(b), b));
    a = where(done, a, b);
    b = where(done, b, rest);
  }
  return abs(a);
}
Results greatest_common_divisor(const Call& call) {
  const DType dtype = call.result().dtype;
  const Ints sizes = call.result().sizes;
  return greatest_divisor(expand(cast(call.tensor("self"), dtype), sizes), expand(cast(call.tensor("other"), dtype), sizes));
}
Results least_common_multiple(const Call& call) {
  const DType dtype = call.result().dtype;
  const Ints sizes = call.result().sizes;
  const Val a = expand(cast(call.tensor("self"), dtype), sizes), b = expand(cast(call.tensor("other"), dtype), sizes);
  const Val divisor = greatest_divisor(a, b), none = divisor == 0;
  return where(none, zeros_like(a), abs(exact_quotient(a, where(none, ones_like(divisor), divisor)) * b));
}

constexpr Decomposition kRules[] = {
    {"aten::frexp.Tensor", mantissa_and_exponent},
    {"aten::nextafter", next_after},
    {"aten::gcd", greatest_common_divisor},
    {"aten::lcm", least_common_multiple},
};

}  // namespace

std::span<const Decomposition> bits() { return kRules; }

}  // namespace ltc::decompose
