// Ops that are not traced run at once, on the CPU. Each such run is counted under the op's name.
#pragma once

#include <ATen/core/stack.h>

#include "core/torch/dispatch/op_entry.h"

namespace ltc {

// Runs `entry.called` with the arguments on the stack: fetches lazy ones, runs the CPU kernel, uploads results and what was
// written. `reason` says why it is not traced, as the end of a sentence. LTC_FALLBACK: allow, warn (each op once) or error
// (throws, naming the op).
void run_eagerly(const OpEntry& entry, torch::jit::Stack& stack, const char* reason);

}  // namespace ltc
