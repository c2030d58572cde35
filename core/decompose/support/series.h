// Sums that approximate functions. Coefficients from the highest power down.
#pragma once

#include <span>

#include "core/decompose/support/value.h"

namespace ltc::decompose {

inline Val polynomial(Val x, std::span<const double> coefficients) {
  Val result = full_like(x, coefficients[0]);
  for (const double c : coefficients.subspan(1)) result = result * x + c;
  return result;
}

// The sum of Chebyshev polynomials at x / 2, half of the first term; Clenshaw's recurrence.
inline Val chebyshev(Val x, std::span<const double> coefficients) {
  Val b0 = full_like(x, coefficients[0]), b1 = zeros_like(x), b2 = b1;
  for (const double c : coefficients.subspan(1)) {
    b2 = b1, b1 = b0;
    b0 = x * b1 - b2 + c;
  }
  return (b0 - b2) * 0.5;
}

// Keys' cubic convolution at a distance below 1, and from 1 to 2.
inline Val cubic_near(Val x, double a) { return ((x * (a + 2) - (a + 3)) * x) * x + 1; }
inline Val cubic_far(Val x, double a) { return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a; }

}  // namespace ltc::decompose
