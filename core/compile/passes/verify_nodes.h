// Nodes beside what is known of their ops. More than verify.h asks: graphs written by hand need not be calls that PyTorch takes.
#pragma once

#include "core/ir/graph.h"

namespace ltc {

// Throws Error(kInternal) that names `after`, the node's op and the first violation. `graph` has passed verify().
//   - an op of the op table has the operands, results and attributes of its schema;
//   - the dtypes and sizes of its results are those that its operands and attributes give (core/compile/types/rules.inc), and it
//     reads and writes nothing outside of its values.
// Ops without a row in the op table pass, and so do the types of ops without a rule.
void verify_nodes(const Graph& graph, const char* after);

// The same of a graph from outside: Error(kDataCorrupt), or Error(kUnsupported) for an op that has no rule.
void check_types(const Graph& graph);

}  // namespace ltc
