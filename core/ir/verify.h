// The legal graph, as a list of checks. Run after every pass in debug builds and in tests.
#pragma once

#include "core/ir/graph.h"

namespace ltc {

// Throws Error(kInternal) that names `after` and the first violation, with the node's op:
//   - no value is defined twice, every use follows its definition, every id is in range;
//   - every value has a type; scalar params have rank 0, no alias_output, and are f64, i64, bool or c128;
//   - outputs are distinct and none is a param; an alias_output has its param's dtype and sizes, and no two params share one;
//   - each node has an op that is not one of the reserved, and at least one wanted output.
void verify(const Graph& graph, const char* after);

// LTC_VERIFY=1: a defect of the host is an error, even one that could be passed over. Read once.
bool is_verifying();

}  // namespace ltc
