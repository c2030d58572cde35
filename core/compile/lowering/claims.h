// The nodes of a graph that the plugin claims.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/compile/lowering/type_demotion.h"
#include "core/ir/graph.h"

namespace ltc {

// By node: which the plugin takes (partition.h says what the numbers mean), and why not the others.
struct Claims {
  std::vector<uint32_t> clusters;
  std::vector<std::string> reasons;  // empty: `apart`
  std::string apart = {};            // why one that is claimed runs on the host, where the others of its cluster do

  const std::string& reason(uint32_t node) const { return reasons[node].empty() ? apart : reasons[node]; }
};

// A node is claimed if all that demotion makes of it is.
//
// LTC_CLAIMS, for tests of plugins and of decompositions, leaves only a part of it: `minimal`, the minimal opset in canonical
// form; `random:SEED`, of the other ops a random half. Throws Error(kInvalidArgument) for a value other than these and `all`.
Claims ask_claims(const Graph& graph, host::PluginDevice& device, const TypeDemotion& demotion);

// The node, and whatever must not be parted from it, goes to the host.
void withdraw(Claims& claims, uint32_t node, std::string reason);

}  // namespace ltc
