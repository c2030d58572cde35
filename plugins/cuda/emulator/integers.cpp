// Arithmetic of integers. The results that the PTX ISA leaves open, as of a division by zero, are all ones.
#include <algorithm>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

template <typename T>
T sum(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
}
template <typename T>
T difference(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b));
}
template <typename T>
T low_product(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}
template <typename T>
T high_product(T a, T b) {
  return static_cast<T>(static_cast<Product<T>>(a) * b >> 8 * sizeof(T));
}
template <typename T>
T quotient(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return difference<T>(0, a);
  }
  return static_cast<T>(a / b);
}
template <typename T>
T remainder(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <typename T>
T negative(T a) {
  return difference<T>(0, a);
}
template <typename T>
T magnitude(T a) {
  return a < 0 ? negative(a) : a;
}
template <std::integral T>
T least(T a, T b) {
  return std::min(a, b);
}
template <std::integral T>
T most(T a, T b) {
  return std::max(a, b);
}
int32_t saturated_sum(int32_t a, int32_t b) {
  return static_cast<int32_t>(std::clamp<int64_t>(int64_t{a} + b, INT32_MIN, INT32_MAX));
}
int32_t saturated_difference(int32_t a, int32_t b) {
  return static_cast<int32_t>(std::clamp<int64_t>(int64_t{a} - b, INT32_MIN, INT32_MAX));
}

template <typename T, auto kFunction>
void multiply_add(Thread& t, const Instruction& in) {
  set<T>(t, in, 0, sum<T>(kFunction(get<T>(t, in, 1), get<T>(t, in, 2)), get<T>(t, in, 3)));
}
template <typename T>
void multiply_wide(Thread& t, const Instruction& in) {
  set<Product<T>>(t, in, 0, static_cast<Product<T>>(static_cast<Product<T>>(get<T>(t, in, 1)) * get<T>(t, in, 2)));
}
template <typename T>
void multiply_wide_add(Thread& t, const Instruction& in) {
  const auto product = static_cast<Product<T>>(static_cast<Product<T>>(get<T>(t, in, 1)) * get<T>(t, in, 2));
  set<Product<T>>(t, in, 0, sum<Product<T>>(product, get<Product<T>>(t, in, 3)));
}

// Numbers of several registers: the carry goes from one instruction to the next.
template <typename T, bool kIn, bool kOut, bool kSubtract>
void with_carry(Thread& t, const Instruction& in) {
  const unsigned __int128 a = get<T>(t, in, 1), b = get<T>(t, in, 2), carry = kIn && t.carry;
  const unsigned __int128 result = kSubtract ? a - b - carry : a + b + carry;
  if (kOut) t.carry = (result >> 8 * sizeof(T) & 1) != 0;
  set<T>(t, in, 0, static_cast<T>(result));
}
template <typename T, auto kFunction, bool kIn, bool kOut>
void multiply_with_carry(Thread& t, const Instruction& in) {
  const unsigned __int128 carry = kIn && t.carry;
  const unsigned __int128 result = carry + kFunction(get<T>(t, in, 1), get<T>(t, in, 2)) + get<T>(t, in, 3);
  if (kOut) t.carry = (result >> 8 * sizeof(T) & 1) != 0;
  set<T>(t, in, 0, static_cast<T>(result));
}

template <typename T>
void add_carries(Table& table, const std::string& type) {
  table.add("add.cc." + type, 3, with_carry<T, false, true, false>);
  table.add("addc." + type, 3, with_carry<T, true, false, false>);
  table.add("addc.cc." + type, 3, with_carry<T, true, true, false>);
  table.add("sub.cc." + type, 3, with_carry<T, false, true, true>);
  table.add("subc." + type, 3, with_carry<T, true, false, true>);
  table.add("subc.cc." + type, 3, with_carry<T, true, true, true>);
  table.add("mad.lo.cc." + type, 4, multiply_with_carry<T, low_product<T>, false, true>);
  table.add("mad.hi.cc." + type, 4, multiply_with_carry<T, high_product<T>, false, true>);
  table.add("madc.lo." + type, 4, multiply_with_carry<T, low_product<T>, true, false>);
  table.add("madc.hi." + type, 4, multiply_with_carry<T, high_product<T>, true, false>);
  table.add("madc.lo.cc." + type, 4, multiply_with_carry<T, low_product<T>, true, true>);
  table.add("madc.hi.cc." + type, 4, multiply_with_carry<T, high_product<T>, true, true>);
}

}  // namespace

void add_integers(Table& table) {
  each_integer([&]<typename T>(const std::string& type) {
    table.add("add." + type, 3, binary<T, sum<T>>);
    table.add("sub." + type, 3, binary<T, difference<T>>);
    table.add("mul.lo." + type, 3, binary<T, low_product<T>>);
    table.add("mul.hi." + type, 3, binary<T, high_product<T>>);
    table.add("mad.lo." + type, 4, multiply_add<T, low_product<T>>);
    table.add("mad.hi." + type, 4, multiply_add<T, high_product<T>>);
    table.add("div." + type, 3, binary<T, quotient<T>>);
    table.add("rem." + type, 3, binary<T, remainder<T>>);
    table.add("min." + type, 3, binary<T, least<T>>);
    table.add("max." + type, 3, binary<T, most<T>>);
    if constexpr (std::is_signed_v<T>) {
      table.add("neg." + type, 2, unary<T, negative<T>>);
      table.add("abs." + type, 2, unary<T, magnitude<T>>);
    }
    if constexpr (sizeof(T) < 8) {
      table.add("mul.wide." + type, 3, multiply_wide<T>);
      table.add("mad.wide." + type, 4, multiply_wide_add<T>);
    }
  });
  table.add("add.sat.s32", 3, binary<int32_t, saturated_sum>);
  table.add("sub.sat.s32", 3, binary<int32_t, saturated_difference>);
  add_carries<uint32_t>(table, "u32");
  add_carries<uint64_t>(table, "u64");
}

}  // namespace ltc::emulator
