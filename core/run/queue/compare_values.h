// How a device's value differs from the same value computed by the CPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/run/queue/host_ops.h"

namespace ltc {

struct Difference {
  int64_t count = 0, elements = 0;  // how many of how many differ
  int64_t at = 0;                   // the element with the largest one, in row-major order
  double got = 0, expected = 0;     // there
};

// Nothing where each element is near enough, or both are NaN. Integers and BOOLs are to be equal, floats to differ by no more
// than `tolerance` times the larger of the element and `scale`. Elements of types that cannot be read as numbers are compared by
// bytes.
std::optional<Difference> compare_values(const HostValue& got, const HostValue& expected, double tolerance, double scale);

// Relative errors that sound kernels of a device with such elements keep below: sums in another order, other approximations.
double tolerance_of(DType dtype);

double magnitude_of(const HostValue& value);  // the largest finite absolute value of floats; 0 where there is none
bool has_nan(const HostValue& value);
std::string stats_text(const HostValue& value);  // "f32[4,8] from -1.5 to 3, mean 0.2, 2 NaN"
std::string difference_text(const Difference& difference,
                            TypeId type);  // "3 of 32 elements differ, most at [1,2]: 3.5 instead of 4"

}  // namespace ltc
