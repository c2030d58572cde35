// Outputs in the memory of donated params.
#pragma once
#include "kernels/plan/plan.h"

namespace ltc::kernels {

// Fills Plan::takes_over. An output may take over the memory of the param that names it if nothing reads the param once the
// output is being written: no later step, and in the kernel that writes it first each element is read, if at all, just before the
// place where its own work item overwrites it. The two buffers of that kernel are marked as sharing memory.
void find_in_place(Plan& plan);

}  // namespace ltc::kernels
