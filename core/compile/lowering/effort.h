// How much the plugin is asked to do for a program (ltc_compile_args::effort).
#pragma once

#include <cstdint>

#include "core/ir/graph.h"

namespace ltc {

enum class Effort : uint32_t {
  kQuick = 0,  // ready soon, for a program that is not likely to run often
  kUsual = 1,
  kMore = 2,
  kMost = 3,
};

// LTC_EFFORT, or kUsual.
Effort default_effort();

// Whether optimizing the program is likely to cost less than it saves in one run. Both grow with the number of nodes; the saving
// grows with the elements of their results too. Depends on the graph alone, so that equal programs are treated alike.
bool repays_in_one_run(const Graph& graph);

}  // namespace ltc
