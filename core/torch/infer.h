// Types, sizes and strides of results, asked once per op, operand types and constants.
#pragma once

#include <ATen/core/stack.h>

#include <vector>

#include "core/torch/op_entry.h"
#include "core/torch/tensor.h"

namespace ltc {

// What a call with these operand types and constants gives.
struct Signature {
  std::vector<TypeId> outputs;  // kNoType: undefined (a masked gradient)
  AttrsId attrs = kNoAttrs;     // of the node
};

// Works it out, without looking at any value. `args` are the arguments of `entry.functional`; lazy tensors among them are used
// for their geometry only. Empty if it cannot be known without running the op on the values (the caller then runs it eagerly).
// Throws what the op throws for these shapes. Calls dispatcher kernels: hold no lock.
std::optional<Signature> infer(const OpEntry& entry, const c10::IValue* args);

// A number that is absent or has its schema default is part of the graph: it is not expected to change.
bool is_default_number(const Arg& arg, const c10::IValue& value);

// Set while PyTorch's structured kernels compute a geometry: their calls of the .out form return at once.
bool is_inferring();

}  // namespace ltc
