// A graph of the ABI as the generator takes it: copied, checked against the table of ops, convolutions taken apart.
#pragma once
#include "kernels/graph/graph.h"
#include "kernels/graph/options.h"
#include "ltc/graph.hpp"

namespace ltc::kernels {

// Whether a row of the table computes the node as it stands there.
bool can_compute(const plugin::Node& node, const Extras& extras);

// Every node must be one that can be computed. points_by_image: see Options.
Graph import_graph(const ltc_graph& graph, const Extras& extras, int64_t points_by_image);

}  // namespace ltc::kernels
