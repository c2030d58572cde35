// Ops of sparse tensors that are not recorded.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace ltc {

// Runs an op with sparse operands on the CPU and counts it; see fallback.h. Throws if the CPU has no kernel for it either, or if
// an operand lies elsewhere.
void run_sparse_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace ltc
