// The values that a case gives to its graph.
#pragma once

#include <string_view>
#include <vector>

#include "conformance/kit/array.h"
#include "core/ir/graph.h"

namespace ltc::conformance {

// The inputs of a run of a graph.
struct Inputs {
  std::vector<Array> arrays;
  std::vector<Scalar> scalars;
};

// fills: a letter of Fill per buffer param; the last one for all further. The same values in each run.
Inputs inputs_for(const Graph& graph, std::string_view fills);

}  // namespace ltc::conformance
