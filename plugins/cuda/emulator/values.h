// Registers' contents as values of the types of PTX.
#pragma once
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cuda/emulator/thread.h"

namespace ltc::emulator {

enum class Rounding { kNearest, kZero, kDown, kUp };

// Floats of 16 bits or fewer, by the bits of exponent and fraction.
template <int kExponent, int kFraction>
struct Small {
  uint16_t bits;

  static constexpr int kBias = (1 << (kExponent - 1)) - 1;
  static constexpr uint16_t kInfinity = ((1 << kExponent) - 1) << kFraction, kNan = 0x7fff;

  double value() const {
    const int exponent = bits >> kFraction & ((1 << kExponent) - 1), fraction = bits & ((1 << kFraction) - 1);
    const double size = exponent == (1 << kExponent) - 1 ? (fraction ? NAN : INFINITY)
                        : exponent                       ? std::ldexp(fraction + (1 << kFraction), exponent - kBias - kFraction)
                                                         : std::ldexp(fraction, 1 - kBias - kFraction);
    return bits >> 15 ? -size : size;
  }
  static Small from(double x, Rounding rounding = Rounding::kNearest);
};
using F16 = Small<5, 10>;
using BF16 = Small<8, 7>;

// A whole number of the given rounding; the current mode of the processor is that to the nearest even.
inline double whole(double x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero: return std::trunc(x);
    case Rounding::kDown: return std::floor(x);
    case Rounding::kUp: return std::ceil(x);
    default: return std::nearbyint(x);
  }
}

template <int kExponent, int kFraction>
Small<kExponent, kFraction> Small<kExponent, kFraction>::from(double x, Rounding rounding) {
  if (std::isnan(x)) return {kNan};
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isinf(x)) return {static_cast<uint16_t>(sign | kInfinity)};
  if (x == 0) return {sign};
  int exponent = 0;
  std::frexp(x, &exponent);
  exponent = std::max(exponent - 1, 1 - kBias);
  const auto steps = std::abs(whole(std::ldexp(x, kFraction - exponent), rounding));
  const auto bits = static_cast<int64_t>(steps) + (static_cast<int64_t>(exponent + kBias - 1) << kFraction);
  if (bits < kInfinity) return {static_cast<uint16_t>(sign | bits)};
  const bool stays =
      rounding == Rounding::kZero || (rounding == Rounding::kDown && x > 0) || (rounding == Rounding::kUp && x < 0);
  return {static_cast<uint16_t>(sign | (kInfinity - (stays ? 1 : 0)))};
}

template <typename T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
// Signed values fill the register, so that a wider read finds their sign.
template <typename T>
uint64_t to_bits(T value) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  } else {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
}

template <typename T>
T get(const Thread& thread, const Instruction& in, int i) {
  return from_bits<T>(thread.registers[in.slots[i]]);
}
template <typename T>
void set(Thread& thread, const Instruction& in, int i, T value) {
  thread.registers[in.slots[i]] = to_bits(value);
}
inline bool holds(const Thread& thread, const Instruction& in, int i) { return thread.registers[in.slots[i]] != 0; }
inline void set_predicate(Thread& thread, const Instruction& in, int i, bool value) { thread.registers[in.slots[i]] = value; }

// A number of any type, in floats of the processor.
template <typename T>
auto number(const Thread& thread, const Instruction& in, int i) {
  if constexpr (std::is_arithmetic_v<T>) {
    return get<T>(thread, in, i);
  } else {
    return get<T>(thread, in, i).value();
  }
}

// Zero where the magnitude is below that of normal numbers, as the suffix .ftz says.
template <std::floating_point T>
T flushed(T x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(T{0}, x) : x;
}
// The other one, unless both are NaN. Zeros are in order of their sign.
template <std::floating_point T>
T least(T a, T b) {
  if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b;
  if (a == b) return std::signbit(a) ? a : b;
  return b < a ? b : a;
}
template <std::floating_point T>
T most(T a, T b) {
  if (std::isnan(a)) return std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

// Handlers of d = f(a) and d = f(a, b). kFlush: see flushed().
template <typename T, auto kFunction, bool kFlush = false>
void unary(Thread& t, const Instruction& in) {
  if constexpr (kFlush) {
    set<T>(t, in, 0, flushed(kFunction(flushed(get<T>(t, in, 1)))));
  } else {
    set<T>(t, in, 0, kFunction(get<T>(t, in, 1)));
  }
}
template <typename T, auto kFunction, bool kFlush = false>
void binary(Thread& t, const Instruction& in) {
  if constexpr (kFlush) {
    set<T>(t, in, 0, flushed(kFunction(flushed(get<T>(t, in, 1)), flushed(get<T>(t, in, 2)))));
  } else {
    set<T>(t, in, 0, kFunction(get<T>(t, in, 1), get<T>(t, in, 2)));
  }
}

// Calls f.operator()<T>(name) for each type.
template <typename F>
void each_integer(F f) {
  f.template operator()<uint16_t>("u16");
  f.template operator()<int16_t>("s16");
  f.template operator()<uint32_t>("u32");
  f.template operator()<int32_t>("s32");
  f.template operator()<uint64_t>("u64");
  f.template operator()<int64_t>("s64");
}
template <typename F>
void each_bits(F f) {
  f.template operator()<uint16_t>("b16");
  f.template operator()<uint32_t>("b32");
  f.template operator()<uint64_t>("b64");
}

// Without the sign and surprises of int: narrow operands are promoted to it.
template <std::integral T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <std::integral T>
using Product = std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                                   std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 4, int64_t, int32_t>,
                                                      std::conditional_t<sizeof(T) == 4, uint64_t, uint32_t>>>;

}  // namespace ltc::emulator
