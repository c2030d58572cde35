// Which operators look at values and may refuse them: a run that fails there must have consumed nothing.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include "torchscript/graph/program.h"

namespace ltc::torchscript {

// Whether the values of its operands can make the node fail. One that cannot fail may still want memory.
bool may_refuse(const Program& program, const torch::jit::Node& node);

}  // namespace ltc::torchscript
