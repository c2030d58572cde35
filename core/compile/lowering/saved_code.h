// Executables for many sizes that outlive the process. They are found by the structure of a graph, whatever its numbers are.
#pragma once

#include <memory>

#include "core/compile/lowering/symbolic_graph.h"
#include "core/compile/lowering/target.h"
#include "ltc/plugin.h"

namespace ltc {

// Puts the code that an earlier process saved for graphs of this structure into target.symbolic. `graph`: as the plugin is given
// it. Returns false if there is none, or if it is damaged.
bool load_code(const Graph& graph, const CompileTarget& target);

// `example`: the graph that was compiled. Does nothing if the plugin cannot save executables.
void save_code(const Graph& example, const SymbolicGraph& general, const std::shared_ptr<ltc_executable>& executable,
               const CompileTarget& target);

}  // namespace ltc
