#include "conformance/ops/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ltc::conformance {
namespace {

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16: return std::ldexp(1.0, -10);
    case DType::kBF16: return std::ldexp(1.0, -7);
    case DType::kF32: return std::numeric_limits<float>::epsilon();
    default: return std::numeric_limits<double>::epsilon();
  }
}

double smallest_normal(DType dtype) {
  return dtype == DType::kF64   ? std::numeric_limits<double>::min()
         : dtype == DType::kF16 ? std::ldexp(1.0, -14)
                                : std::numeric_limits<float>::min();
}

bool close(double got, double expected, DType dtype, Tolerance tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return tolerance.ulps > 0 || got != 0 || std::signbit(got) == std::signbit(expected);
  if (tolerance.ulps == 0 || std::isinf(got) || std::isinf(expected)) return false;
  const double scale = std::max(std::fabs(expected), tolerance.floor);
  return std::fabs(got - expected) <= tolerance.ulps * epsilon(dtype) * scale + smallest_normal(dtype);
}

}  // namespace

std::string difference(const Array& got, const Array& expected, Tolerance tolerance) {
  int64_t wrong = 0, first = 0;
  for (int64_t i = expected.count() - 1; i >= 0; --i) {
    const bool good = is_floating(expected.dtype) ? close(got.real(i), expected.real(i), expected.dtype, tolerance)
                                                  : got.integer(i) == expected.integer(i);
    if (!good) ++wrong, first = i;
  }
  if (wrong == 0) return "";
  return cat(wrong, " of ", expected.count(), " elements differ, the first at ", first, ": got ", got.element_text(first),
             ", expected ", expected.element_text(first), " within ", tolerance.ulps, " ulps (of at least ", tolerance.floor,
             ")");
}

}  // namespace ltc::conformance
