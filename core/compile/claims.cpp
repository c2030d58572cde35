#include "core/compile/claims.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/compile/abi_graph.h"
#include "core/host/plugin.h"

namespace ltc {

Claims ask_claims(const Graph& graph, host::PluginDevice& device, const Narrowing& narrowing) {
  const size_t count = graph.nodes.size();
  const std::string& plugin = device.plugin().name();
  if (!device.can_compute()) {
    return {std::vector<uint32_t>(count, 0), std::vector<std::string>(count, cat("plugin ", plugin, " computes nothing"))};
  }
  Claims claims{std::vector<uint32_t>(count, 0), std::vector<std::string>(count)};
  if (count == 0) return claims;
  const NarrowedGraph narrowed = narrow(graph, narrowing);
  const std::vector<uint32_t> answers = device.claims(*AbiGraph(narrowed.graph).get());
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!narrowed.is_cast[i]) claims.clusters[narrowed.origin[i]] = answers[i];
  }
  for (std::string& reason : claims.reasons) {
    reason = cat("plugin ", plugin, " claims it only in one program with ops that have to run apart from it");
  }
  const std::vector<bool> wide = must_stay_wide(graph, narrowing);
  for (size_t i = 0; i < answers.size(); ++i) {
    const uint32_t node = narrowed.origin[i];
    if (wide[node]) {
      withdraw(claims, node, "in the narrower type that the device computes in it would give something else");
    } else if (answers[i] == 0) {
      withdraw(claims, node, cat("plugin ", plugin, " does not claim it"));
    }
  }
  return claims;
}

void withdraw(Claims& claims, uint32_t node, std::string reason) {
  std::vector<uint32_t>& clusters = claims.clusters;
  const uint32_t cluster = clusters[node];
  if (cluster >= 2) std::ranges::replace(clusters, cluster, 0u);
  clusters[node] = 0;
  claims.reasons[node] = std::move(reason);
}

}  // namespace ltc
