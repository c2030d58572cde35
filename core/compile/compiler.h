// From a recorded graph to what runs.
#pragma once

#include <memory>

#include "core/compile/program.h"

namespace ltc {

namespace host {
class PluginDevice;
}

// Passes, claims, decomposition of what is not claimed, partition, lowering, compiling. What the plugin does not claim even then,
// or refuses when it is lowered, becomes host steps; a plugin that cannot compute gets one host step. `device` outlives the
// program. Throws what the plugin throws, but for the refusal of a single node.
std::shared_ptr<const Program> compile(Graph graph, host::PluginDevice& device);

}  // namespace ltc
