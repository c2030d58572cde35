// The results of a large call, from the same call of small tensors.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <vector>

#include "core/ir/type.h"
#include "core/torch/dispatch/op_entry.h"

namespace ltc {

// Runs the CPU's kernel on small tensors that are laid out as those of `args` are, a few times with other sizes each time. Sizes
// of results that follow those of the operands linearly are known from that, and strides are those of the kernel. Nothing where
// it is not so, or where the kernel refuses the small call. `asks_kernel`: the numbers among the arguments stay as they are.
std::optional<std::vector<TypeId>> infer_from_small_calls(const OpEntry& entry, const torch::jit::Stack& args, bool asks_kernel);

}  // namespace ltc
