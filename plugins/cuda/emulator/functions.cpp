// Functions of floats that involve no rounding, or only an approximation.
#include <algorithm>
#include <cmath>

#include "cuda/emulator/table.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {
namespace {

template <typename T>
T negative(T x) {
  return -x;
}
template <typename T>
T magnitude(T x) {
  return std::fabs(x);
}
float least_or_nan(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : least(a, b);
}
float most_or_nan(float a, float b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : most(a, b);
}

template <typename T>
void copy_sign(Thread& t, const Instruction& in) {
  set<T>(t, in, 0, std::copysign(get<T>(t, in, 2), get<T>(t, in, 1)));
}
float exp2_of(float x) { return std::exp2(x); }
float log2_of(float x) { return std::log2(x); }
float sin_of(float x) { return std::sin(x); }
float cos_of(float x) { return std::cos(x); }
float tanh_of(float x) { return std::tanh(x); }
float sqrt_of(float x) { return std::sqrt(x); }
float inverse(float x) { return 1 / x; }
float inverse_sqrt(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
float ratio(float a, float b) { return a / b; }

// These instructions read and write the upper half of a double alone. Small ones count as zero.
double upper_half(double x) { return from_bits<double>(to_bits(flushed(x)) & ~uint64_t{0xffffffff}); }
double rough_inverse(double x) { return upper_half(1 / upper_half(x)); }
double rough_inverse_sqrt(double x) { return upper_half(1 / std::sqrt(upper_half(x))); }

template <auto kFunction>
void add_approximate(Table& table, const std::string& name) {
  table.add(name + ".approx.f32", 2, unary<float, kFunction>);
  table.add(name + ".approx.ftz.f32", 2, unary<float, kFunction, true>);
}

enum class Test { kFinite, kInfinite, kNumber, kNan, kNormal, kSubnormal };
template <typename T, Test kTest>
void test(Thread& t, const Instruction& in) {
  const T x = get<T>(t, in, 1);
  const bool is = kTest == Test::kFinite     ? std::isfinite(x)
                  : kTest == Test::kInfinite ? std::isinf(x)
                  : kTest == Test::kNumber   ? !std::isnan(x)
                  : kTest == Test::kNan      ? std::isnan(x)
                  : kTest == Test::kNormal   ? std::isnormal(x) || x == 0
                                             : std::fpclassify(x) == FP_SUBNORMAL;
  set_predicate(t, in, 0, is);
}

template <typename T>
void add_of_type(Table& table, const std::string& type) {
  table.add("neg" + type, 2, unary<T, negative<T>>);
  table.add("abs" + type, 2, unary<T, magnitude<T>>);
  table.add("min" + type, 3, binary<T, least<T>>);
  table.add("max" + type, 3, binary<T, most<T>>);
  table.add("copysign" + type, 3, copy_sign<T>);
  table.add("testp.finite" + type, 2, test<T, Test::kFinite>);
  table.add("testp.infinite" + type, 2, test<T, Test::kInfinite>);
  table.add("testp.number" + type, 2, test<T, Test::kNumber>);
  table.add("testp.notanumber" + type, 2, test<T, Test::kNan>);
  table.add("testp.normal" + type, 2, test<T, Test::kNormal>);
  table.add("testp.subnormal" + type, 2, test<T, Test::kSubnormal>);
}

}  // namespace

void add_functions(Table& table) {
  add_of_type<float>(table, ".f32");
  add_of_type<double>(table, ".f64");
  table.add("neg.ftz.f32", 2, unary<float, negative<float>, true>);
  table.add("abs.ftz.f32", 2, unary<float, magnitude<float>, true>);
  table.add("min.ftz.f32", 3, binary<float, least<float>, true>);
  table.add("max.ftz.f32", 3, binary<float, most<float>, true>);
  table.add("min.NaN.f32", 3, binary<float, least_or_nan>);
  table.add("max.NaN.f32", 3, binary<float, most_or_nan>);
  add_approximate<exp2_of>(table, "ex2");
  add_approximate<log2_of>(table, "lg2");
  add_approximate<sin_of>(table, "sin");
  add_approximate<cos_of>(table, "cos");
  add_approximate<sqrt_of>(table, "sqrt");
  add_approximate<inverse>(table, "rcp");
  add_approximate<inverse_sqrt>(table, "rsqrt");
  table.add("tanh.approx.f32", 2, unary<float, tanh_of>);
  for (const char* kind : {"approx", "full"}) {
    table.add(std::string("div.") + kind + ".f32", 3, binary<float, ratio>);
    table.add(std::string("div.") + kind + ".ftz.f32", 3, binary<float, ratio, true>);
  }
  table.add("rcp.approx.ftz.f64", 2, unary<double, rough_inverse>);
  table.add("rsqrt.approx.f64", 2, unary<double, rough_inverse_sqrt>);
  table.add("rsqrt.approx.ftz.f64", 2, unary<double, rough_inverse_sqrt>);
}

}  // namespace ltc::emulator
