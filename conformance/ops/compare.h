// Whether results are good.
#pragma once

#include <string>

#include "conformance/kit/array.h"
#include "conformance/ops/cases.h"

namespace ltc::conformance {

// Empty if each element is within the tolerance, else a sentence with the first that is not. NaN equals NaN, integers are equal
// or not. Two arrays of one type.
std::string difference(const Array& got, const Array& expected, Tolerance tolerance);

}  // namespace ltc::conformance
