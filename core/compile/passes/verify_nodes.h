// Nodes beside what is known of their ops. More than verify.h asks: graphs written by hand need not be calls that PyTorch takes.
#pragma once

#include "core/ir/graph.h"

namespace ltc {

// Throws Error(kInternal) that names `after`, the node's op and the first violation. `graph` has passed verify().
//   - an op of the op table has as many operands and results as its schema, and no attribute that the schema lacks;
//   - a node that only moves elements has the dtype and the sizes that its operands and attributes give, reads nothing outside
//     its operand and writes nothing outside its result;
//   - a conversion gives the dtype that it names.
// Ops without a row in the op table pass.
void verify_nodes(const Graph& graph, const char* after);

}  // namespace ltc
