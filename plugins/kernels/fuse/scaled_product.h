// Products of floats of 8 bits, each operand times a number that lies in memory, as a library takes them.
#pragma once
#include <vector>

#include "kernels/graph/graph.h"
#include "kernels/graph/strided.h"
#include "ltc/graph.hpp"

namespace ltc::kernels {

// Whether a node of the ABI, aten::_scaled_mm, is of sizes and types that a library takes, with scales of one element.
bool is_scaled_product(const plugin::Node& node);

// Appends what the node becomes: one of kind kScaledProduct. Its operands are a [rows, length], b as [columns, length], their
// scales, and perhaps a vector that is added to each row.
void add_scaled_product(Graph& graph, const Node& node);

// Where the library reads a or b of such a node, as a batch of one: there, or where it is a view of something whose rows it can
// take. Sizes as above.
StridedMatrix scaled_operand(const Graph& graph, const Node& node, size_t i);

}  // namespace ltc::kernels
