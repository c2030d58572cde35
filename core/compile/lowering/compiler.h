// From a recorded graph to what runs.
#pragma once

#include <memory>

#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/narrowing.h"
#include "core/compile/lowering/program.h"
#include "core/compile/lowering/symbolic_programs.h"

namespace ltc {

// Passes, claims, partition, lowering, compiling. What the plugin does not claim, or refuses when it is lowered, becomes host
// steps; a plugin that cannot compute gets one host step. The plugin's part is narrowed, the types in the program are not.
// `device` outlives the program; `precision`: see precision.h; `symbolic`, for a plugin that understands it: what was compiled
// before, and will be found again. Throws what the plugin throws, but for the refusal of a single node.
std::shared_ptr<const Program> compile(Graph graph, host::PluginDevice& device, const Narrowing& narrowing = {},
                                       uint32_t precision = 0, SymbolicPrograms* symbolic = nullptr,
                                       Effort effort = usual_effort());

// The steps for people: the plugin's own text of each where it has one. Lowers them once more. The arguments are compile()'s.
std::string program_text(const Program& program, host::PluginDevice& device, const Narrowing& narrowing = {},
                         uint32_t precision = 0);

}  // namespace ltc
