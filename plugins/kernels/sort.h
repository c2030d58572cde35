// Sorting, the one kernel that the IR does not hold.
#pragma once
#include "plan.h"

namespace ltc::kernels {

// Stable, NaN larger than all else. Integers behind `items`: length, stride.
Source render_sort(const SortKernel& sort, const Dialect& dialect);

}  // namespace ltc::kernels
