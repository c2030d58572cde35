// maths.h beside the double functions of the system's library, over a stride through all floats. LTC_MATHS_STRIDE=1 takes every
// one of them, in some minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "kernels/print/maths.h"

#ifdef LTC_TESTS_FUSED
extern float (*const kFused[])(float);  // in the order of kFunctions
#endif

namespace {

struct Function {
  const char* name;
  float (*function)(float);
  double (*exact)(double);
  double ulps, fused_ulps;  // what maths.h promises
};

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }

const Function kFunctions[] = {
    {"exp", ltc_exp_f32, std::exp, 1.17, 0.86},        {"expm1", ltc_expm1_f32, std::expm1, 0.99, 0.99},
    {"log", ltc_log_f32, std::log, 1.07, 0.92},        {"log1p", ltc_log1p_f32, std::log1p, 1.07, 0.91},
    {"tanh", ltc_tanh_f32, std::tanh, 1.43, 1.55},     {"erf", ltc_erf_f32, std::erf, 1.18, 1.00},
    {"sigmoid", ltc_sigmoid_f32, sigmoid, 1.37, 0.95},
};

// Null where it does not run.
float (*fused([[maybe_unused]] size_t i))(float) {
#ifdef LTC_TESTS_FUSED
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kFused[i];
#endif
  return nullptr;
}

// In units of the last place of the result; infinite where the result is of another kind. Infinity stands for the number that
// would follow the largest one.
double error(float got, double exact) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : kInfinity;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : kInfinity;
  const double most = 0x1p128, wanted = std::clamp(exact, -most, most), given = std::clamp(static_cast<double>(got), -most, most);
  const int exponent = std::clamp(std::ilogb(wanted), -126, 127);
  return std::fabs(given - wanted) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double ulps = 0;
  float at = 0;
  void add(float x, float got, double exact) {
    const double here = error(got, exact);
    if (here > ulps) *this = {here, x};
  }
};

template <class Take>
void for_arguments(Take take) {
  const char* given = std::getenv("LTC_MATHS_STRIDE");
  const uint64_t stride = given ? std::max(std::strtoull(given, nullptr, 10), 1ull) : 4099;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride) take(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Zeros, infinities, NaNs, ones, the least and largest numbers of each kind, where exponentials end; and the neighbours of all.
  for (const uint32_t magnitude : {0x0u, 0x7f800000u, 0x7fc00000u, 0x3f800000u, 0x1u, 0x800000u, 0x7f7fffffu, 0x42b17218u,
                                   0x42aeac50u, 0x42cff1b5u, 0x42ce8ed0u}) {
    for (const uint32_t near : {magnitude - 1, magnitude, magnitude + 1}) {
      take(std::bit_cast<float>(near & 0x7fffffffu));
      take(std::bit_cast<float>(near | 0x80000000u));
    }
  }
}

class MathsTest : public ::testing::TestWithParam<size_t> {};

TEST_P(MathsTest, error_is_as_promised) {
  const Function& f = kFunctions[GetParam()];
  const auto with_fma = fused(GetParam());
  Worst worst, worst_fused;
  for_arguments([&](float x) {
    const double exact = f.exact(x);
    worst.add(x, f.function(x), exact);
    if (with_fma) worst_fused.add(x, with_fma(x), exact);
  });
  RecordProperty("ulps", std::to_string(worst.ulps));
  RecordProperty("fused_ulps", std::to_string(worst_fused.ulps));
  EXPECT_LE(worst.ulps, f.ulps) << "at " << worst.at;
  EXPECT_LE(worst_fused.ulps, f.fused_ulps) << "fused, at " << worst_fused.at;
}

INSTANTIATE_TEST_SUITE_P(Functions, MathsTest, ::testing::Range(size_t{0}, std::size(kFunctions)),
                         [](const auto& info) { return std::string(kFunctions[info.param].name); });

}  // namespace
