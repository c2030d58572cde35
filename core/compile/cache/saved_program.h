// Programs that outlive the process: what the passes and the partition made of a graph, with the plugin's executables where it
// can save them. Where it cannot, they are lowered again, and nothing else is done again.
#pragma once

#include <memory>
#include <string>

#include "core/compile/lowering/prefetch.h"
#include "core/compile/lowering/program.h"
#include "core/compile/lowering/target.h"

namespace ltc {

// All that the program of a graph depends on: the graph, the builds of core and plugin, the device, what narrows and restricts,
// what may be rounded (precision.h).
std::string program_key(const Graph& graph, const CompileTarget& target);

// `graph`: the one that was compiled, for the locations of its nodes.
std::string save_program(const Program& program, const Graph& graph, host::PluginDevice& device);

// Throws where the value is damaged, or the plugin does not take what it took before.
std::shared_ptr<Program> load_program(const SavedValue& saved, const Graph& graph, const CompileTarget& target);

}  // namespace ltc
