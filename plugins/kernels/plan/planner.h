// From a graph of the ABI to the steps that compute it.
#pragma once
#include "kernels/plan/plan.h"
#include "kernels/print/dialect.h"
#include "kernels/print/render.h"

namespace ltc::kernels {

Plan make_plan(const ltc_graph& graph, const Options& options);

// The text of a step that is no library's.
Source render(const Step& step, const Dialect& dialect);

}  // namespace ltc::kernels
