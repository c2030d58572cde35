// Reductions of few long rows, in two steps: of chunks, then of what those come to. For devices that run many rows at once.
#pragma once
#include "kernels/fuse/fuse.h"
#include "kernels/graph/graph.h"

namespace ltc::kernels {

// Where Options::split_threads asks for it.
void split_reductions(Graph& graph, const Options& options);

}  // namespace ltc::kernels
