// Geometries of the results of dear ops, without running them: convolutions, norms, attention, recurrent layers, look-ups,
// optimizers, and what stands between them.
//
// A rule answers for what it knows to the last stride; for all else, and for calls that are an error, it has no answer, and the
// CPU kernel is asked instead (infer.cpp). tests/test_shape_rules.py compares the two.
#pragma once

#include <optional>
#include <vector>

#include "core/torch/dispatch/op_entry.h"
#include "core/torch/tensor/tensor.h"

namespace ltc {

// The types of the results of `entry.recorded`; kNoType of one that the call leaves undefined.
std::optional<std::vector<TypeId>> apply_shape_rule(const OpEntry& entry, const c10::IValue* args);

}  // namespace ltc
