// Types, sizes and strides of results, asked once per op, operand types and constants.
#pragma once

#include <ATen/core/stack.h>

#include <vector>

#include "core/base/api.h"
#include "core/torch/dispatch/op_entry.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {

// Types of the results of a call, for its operand types and constants.
struct Signature {
  // Types of the node's outputs. kNoType: undefined (a masked gradient). For an op that writes arguments, the geometries of these
  // arguments after the call come first.
  std::vector<TypeId> outputs;
  AttrsId attrs = kNoAttrs;  // of the node
};

// Infers the signature without looking at any value. `args` are the arguments of `entry.recorded`; only the geometry of lazy
// tensors among them is used. Returns nothing if the signature depends on values: the caller then runs the op eagerly.
// `asks_kernel`: the numbers among the arguments matter too, so the CPU kernel is asked, not a rule. Throws what the op throws
// for these shapes. Calls dispatcher kernels: hold no lock. Takes memory for small tensors only.
std::optional<Signature> infer(const OpEntry& entry, const c10::IValue* args, bool asks_kernel = false);

// Runs `entry.called` on dummy inputs on the CPU for its `args`, which share memory as the arguments do, and throws its errors.
// Some errors depend on more than operand types: an output of another dtype or size, or one that overlaps an operand. Returns the
// geometries of the written arguments after the call, in order. `signature` is that of the call. Dummy inputs of a large call
// have no memory.
std::vector<TypeId> dry_run(const OpEntry& entry, const c10::IValue* args, const Signature& signature);

// For tests: calls of more bytes are not tried as they are. 128 MiB, unless it is set.
LTC_API void set_dry_run_limit(double bytes);

// Set while PyTorch's structured kernels compute a geometry: their calls of the .out form return at once.
bool is_inferring();

}  // namespace ltc
