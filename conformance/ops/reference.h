// The meaning of the ops of the minimal opset: plain functions over host arrays, as exact as long double is. Slow on purpose.
#pragma once

#include <vector>

#include "conformance/kit/array.h"
#include "core/ir/graph.h"

namespace ltc::conformance {

// Runs a graph whose nodes are all of the minimal opset. `inputs`: one per buffer param; `scalars`: one per scalar param.
// Throws ltc::Error(kInternal) for an op without a reference.
std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs, const std::vector<Scalar>& scalars = {});

bool has_reference(std::string_view op);

}  // namespace ltc::conformance
