// The plugin's forms of a graph, which give themselves back to the device.
#pragma once

#include <memory>
#include <string_view>

#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/target.h"
#include "ltc/plugin.h"
#include "ltc/symbolic.h"

namespace ltc {

// The graph as it is given to the plugin: demoted. `sizes`: which of its numbers are symbols; null if none is.
std::shared_ptr<ltc_program> lower(const Graph& graph, const CompileTarget& target, const ltc_symbolic_sizes* sizes = nullptr);

std::shared_ptr<ltc_executable> compile(const ltc_program& program, host::PluginDevice& device, Effort effort);

// Loads bytes that the device's plugin saved; null where it takes them no more.
std::shared_ptr<ltc_executable> load(std::string_view saved, host::PluginDevice& device);

}  // namespace ltc
