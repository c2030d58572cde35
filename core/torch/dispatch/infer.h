// Types, sizes and strides of results, asked once per op, operand types and constants.
#pragma once

#include <ATen/core/stack.h>

#include <vector>

#include "core/base/api.h"
#include "core/torch/dispatch/op_entry.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {

// What a call with these operand types and constants gives.
struct Signature {
  // Of the node. kNoType: undefined (a masked gradient). Of a writing op, first the geometries that what it writes has then.
  std::vector<TypeId> outputs;
  AttrsId attrs = kNoAttrs;  // of the node
};

// Works it out, without looking at any value. `args` are the arguments of `entry.recorded`; lazy tensors among them are used
// for their geometry only. Empty if it cannot be known without running the op on the values (the caller then runs it eagerly).
// `asks_kernel`: the numbers among the arguments decide too, so the CPU kernel is asked whatever else would know.
// Throws what the op throws for these shapes. Calls dispatcher kernels: hold no lock. Takes memory for small tensors only.
std::optional<Signature> infer(const OpEntry& entry, const c10::IValue* args, bool asks_kernel = false);

// Runs `entry.called` on CPU stand-ins for its `args`, which share memory as the arguments do, and throws what it throws: for the
// errors that depend on more than operand types (an output of another dtype or size, or one that overlaps an operand). Returns
// the geometries that what it writes then has, in order. `signature`: of the call. A large one is asked from stand-ins without
// memory.
std::vector<TypeId> rehearse(const OpEntry& entry, const c10::IValue* args, const Signature& signature);

// For tests: calls of more bytes are not tried as they are. 128 MiB, unless it is set.
LTC_API void set_largest_trial(double bytes);

// Set while PyTorch's structured kernels compute a geometry: their calls of the .out form return at once.
bool is_inferring();

}  // namespace ltc
