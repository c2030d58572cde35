// What the plugin claims of a graph, and LTC_CLAIMS, which makes it claim less.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ir/graph.h"

namespace ltc {

namespace host {
class PluginDevice;
}

// Per node: 0 not claimed, 1 claimed alone, k >= 2 claimed with all others of k.
//
// LTC_CLAIMS, for tests of plugins and of decompositions, leaves only a part of what is claimed: `minimal`, the minimal opset in
// canonical form; `half:SEED`, of the other ops a random half. Throws Error(kInvalidArgument) for anything else.
std::vector<uint32_t> ask_claims(const Graph& graph, host::PluginDevice& device);

}  // namespace ltc
