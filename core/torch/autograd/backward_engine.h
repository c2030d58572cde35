// Backward without what PyTorch's engine does around each node.
//
// PyTorch swaps the thread's whole state (dispatch keys, modes, autocast, hooks, record functions) before each node and after it,
// as nodes may run in any thread. In a backward that only records, in the thread that asked for it, that is more work than the
// nodes'. Its queue, made for several threads and streams, is as much again.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/variable.h>

#include "core/base/api.h"

namespace ltc {

// Whether nothing in this thread or process wants to see a backward's nodes one by one: no profiler, anomaly mode, transform or
// dispatch mode, and no threads of PyTorch's to run them.
LTC_API bool nothing_intercepts_backward();

// As Engine::execute of PyTorch's default engine, without captures. Its nodes are evaluated one after another in PyTorch's order,
// as if all were one node; the counter InlinedBackwardNodes has their number. From the first one on that has hooks, or is of a
// class that may run Python or a user's C++ code, they are evaluated by PyTorch's loop.
//
// Any thread, also inside another backward, without the GIL. Throws what a node threw.
LTC_API void run_backward(const std::vector<torch::autograd::Edge>& roots, const torch::autograd::variable_list& gradients,
                          bool keep_graph, bool create_graph);

}  // namespace ltc
