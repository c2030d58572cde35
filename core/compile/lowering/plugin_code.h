// The plugin's forms of a graph, which give themselves back to the device.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/target.h"
#include "ltc/plugin.h"
#include "ltc/symbolic.h"

namespace ltc {

// The graph as it is given to the plugin: demoted. `sizes`: which of its numbers are symbols; null if none is.
std::shared_ptr<ltc_program> lower(const Graph& graph, const CompileTarget& target, const ltc_symbolic_sizes* sizes = nullptr);

std::shared_ptr<ltc_executable> compile(const ltc_program& program, host::PluginDevice& device, Effort effort);

using Executables = std::vector<std::shared_ptr<ltc_executable>>;

// Begins a value for the disk with the executables that it needs, so that these can be loaded before anybody asks for the value
// (prefetch.h). One that is null, or cannot be saved, stays null. Returns false if one cannot be saved.
bool save_executables(ByteWriter& out, const Executables& executables, host::PluginDevice& device);

// Takes them from the front of the value; null where the plugin takes one no more.
Executables load_executables(ByteReader& in, host::PluginDevice& device);

}  // namespace ltc
