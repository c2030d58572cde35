// Matrix products that a library computes.
#pragma once
#include "kernels/graph/graph.h"
#include "kernels/graph/options.h"
#include "kernels/graph/strided.h"

namespace ltc::kernels {

// A product of halves that were widened becomes one of halves, which the library adds up in F32 as before; where its result is
// only narrowed again, the library does that too.
void narrow_products(Graph& graph, const Options& options);

// Gives the products that go to the library their second operand in tiles of columns.
void pack_products(Graph& graph, const Options& options);

}  // namespace ltc::kernels
