// Collectives that run beside computing, for plugins that carry collectives out themselves and claim their two halves.
#pragma once

#include "core/ir/graph.h"

namespace ltc {

// Makes a start and a wait of each collective whose result is read:
//
//   %r, %t = ltc_c10d::all_reduce(%x, %after) {..., group=g}
//   %p, %t = ltc_c10d::all_reduce_start(%x, %after) {..., group=g};  %r = ltc_c10d::wait(%p) {group=g}
//
// and puts them apart. A wait goes to the first node that needs its result, with nodes that read nothing else but it. The start
// of a collective that depends on params alone, as that of the weights of a layer, goes to the place where the last such one was
// waited for: at most one of them is under way beside the one that is in use.
//
// No start comes later than before and no wait earlier. So a wait needs only starts that came before it in the program, on every
// rank, and the ranks cannot wait for each other in a circle, whatever the rest of their graphs is. Starts of a group keep their
// order by their tokens.
//
// Returns false if there is no such collective.
bool overlap_collectives(Graph& graph);

}  // namespace ltc
