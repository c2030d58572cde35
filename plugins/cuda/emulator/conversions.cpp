// cvt between integers and from floats to integers or whole floats. Conversions that round to floats are with their arithmetic.
#include <bit>
#include <cmath>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

template <typename From, typename To, bool kSaturate>
void between_integers(Thread& t, const Instruction& in) {
  const From from = get<From>(t, in, 1);
  if constexpr (kSaturate) {
    using Limits = std::numeric_limits<To>;
    const auto wide = static_cast<__int128>(from);
    set<To>(t, in, 0, static_cast<To>(std::min<__int128>(std::max<__int128>(wide, Limits::min()), Limits::max())));
  } else {
    set<To>(t, in, 0, static_cast<To>(from));
  }
}

// Values out of range become its ends. NaN becomes 0, or the highest bit alone if a side has 64 bits.
template <typename From, typename To, Rounding kRounding>
void to_integer(Thread& t, const Instruction& in) {
  using Limits = std::numeric_limits<To>;
  const double value = whole(static_cast<double>(number<From>(t, in, 1)), kRounding);
  To result{};
  if (std::isnan(value)) {
    result = sizeof(From) == 8 || sizeof(To) == 8 ? static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
  } else if (value <= static_cast<double>(Limits::min())) {
    result = Limits::min();
  } else if (value >= static_cast<double>(Limits::max())) {
    result = Limits::max();
  } else {
    result = static_cast<To>(value);
  }
  set<To>(t, in, 0, result);
}

template <typename T, Rounding kRounding>
void to_whole(Thread& t, const Instruction& in) {
  const T value = get<T>(t, in, 1);
  set<T>(t, in, 0, std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(whole(value, kRounding)));
}
template <typename T>
void saturate(Thread& t, const Instruction& in) {
  const T value = get<T>(t, in, 1);
  set<T>(t, in, 0, value > 0 ? std::min(value, T{1}) : T{0});
}
template <bool kFlush>
void widen(Thread& t, const Instruction& in) {
  const auto value = get<float>(t, in, 1);
  set<double>(t, in, 0, kFlush ? flushed(value) : value);
}
// To the nearest of 10 bits behind the point; away from zero where two are.
void to_tf32(Thread& t, const Instruction& in) {
  const auto value = get<float>(t, in, 1);
  set<uint32_t>(t, in, 0, std::isnan(value) ? 0x7fffffff : (std::bit_cast<uint32_t>(value) + 0x1000) & 0xffffe000);
}
void flush(Thread& t, const Instruction& in) { set<float>(t, in, 0, flushed(get<float>(t, in, 1))); }

template <typename F>
void each_integer_and_byte(F f) {
  each_integer(f);
  f.template operator()<uint8_t>("u8");
  f.template operator()<int8_t>("s8");
}

template <typename From>
void add_from_float(Table& table, const std::string& from) {
  each_integer_and_byte([&]<typename To>(const std::string& to) {
    for (const std::string flush : {"", ".ftz"}) {
      const std::string names = flush + "." + to + from;
      table.add("cvt.rni" + names, 2, to_integer<From, To, Rounding::kNearest>);
      table.add("cvt.rzi" + names, 2, to_integer<From, To, Rounding::kZero>);
      table.add("cvt.rmi" + names, 2, to_integer<From, To, Rounding::kDown>);
      table.add("cvt.rpi" + names, 2, to_integer<From, To, Rounding::kUp>);
    }
  });
}
template <typename T>
void add_whole(Table& table, const std::string& names) {
  table.add("cvt.rni" + names, 2, to_whole<T, Rounding::kNearest>);
  table.add("cvt.rzi" + names, 2, to_whole<T, Rounding::kZero>);
  table.add("cvt.rmi" + names, 2, to_whole<T, Rounding::kDown>);
  table.add("cvt.rpi" + names, 2, to_whole<T, Rounding::kUp>);
  table.add("cvt.sat" + names, 2, saturate<T>);
}

}  // namespace

void add_conversions(Table& table) {
  each_integer_and_byte([&]<typename From>(const std::string& from) {
    each_integer_and_byte([&]<typename To>(const std::string& to) {
      table.add("cvt." + to + "." + from, 2, between_integers<From, To, false>);
      table.add("cvt.sat." + to + "." + from, 2, between_integers<From, To, true>);
    });
  });
  add_from_float<float>(table, ".f32");
  add_from_float<double>(table, ".f64");
  add_from_float<F16>(table, ".f16");
  add_from_float<BF16>(table, ".bf16");
  add_whole<float>(table, ".f32.f32");
  add_whole<double>(table, ".f64.f64");
  table.add("cvt.f64.f32", 2, widen<false>);
  table.add("cvt.ftz.f64.f32", 2, widen<true>);
  table.add("cvt.ftz.f32.f32", 2, flush);
  table.add("cvt.rna.tf32.f32", 2, to_tf32);
}

}  // namespace ltc::emulator
