// Sorting by a work item per row, which the IR does not hold.
#pragma once
#include <string>

#include "kernels/plan/plan.h"

namespace ltc::kernels {

// Whether an element p stands before q though it came later. NaN is larger than all else.
std::string stands_before(const SortKernel& sort);

// Stable. Integers behind `items`: length, stride.
Source render_sort(const SortKernel& sort, const Dialect& dialect);

}  // namespace ltc::kernels
