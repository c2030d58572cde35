#include "core/compile/lowering/claims.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"

namespace ltc {
namespace {

// The claims that LTC_CLAIMS leaves.
struct Restriction {
  bool none = true;
  std::optional<uint64_t> random_seed = {};  // empty: the minimal opset alone

  bool allows(const Graph& graph, const Node& node) const {
    if (none || decompose::is_minimal(graph, node)) return true;
    if (!random_seed) return false;
    std::string_view name = op_name(node.op);  // a backward goes with its forward: they share what only they understand
    if (name.ends_with("_backward")) name.remove_suffix(std::string_view("_backward").size());
    return hash_bytes(*random_seed, name.data(), name.size()) % 2 == 0;
  }
};

Restriction read_restriction() {
  const std::string text = env::get(env::kClaims);
  if (text == "all") return {};
  if (text == "minimal") return {false};
  uint64_t seed = 0;  // after "random:"
  std::from_chars(text.data() + text.find(':') + 1, text.data() + text.size(), seed);
  return {false, seed};
}

// PyTorch lets an empty vector stand among the operands of cat, whatever their rank; no plugin has to know that.
bool joins_empty_vectors(const Graph& graph, const Node& node) {
  if (op_name(node.op) != "aten::cat") return false;
  const auto rank = [&](ValueId value) { return graph.type(value).sizes.size(); };
  return std::ranges::any_of(node.inputs, [&](ValueId input) { return rank(input) != rank(node.inputs[0]); });
}

}  // namespace

Claims ask_claims(const Graph& graph, host::PluginDevice& device, const TypeDemotion& demotion) {
  const size_t count = graph.nodes.size();
  const std::string& plugin = device.plugin().name();
  if (!device.can_compute()) {
    return {std::vector<uint32_t>(count, 0), std::vector<std::string>(count, cat("plugin ", plugin, " computes nothing"))};
  }
  Claims claims{std::vector<uint32_t>(count, 0), std::vector<std::string>(count)};
  if (count == 0) return claims;
  const DemotedGraph demoted = demote(graph, demotion);
  const std::vector<uint32_t> answers = device.claims(*AbiGraph(demoted.graph()).get());
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!demoted.is_cast[i]) claims.clusters[demoted.origin[i]] = answers[i];
  }
  claims.apart = cat("plugin ", plugin, " claims it only in one program with ops that have to run apart from it");
  const std::vector<bool> wide = not_demotable(graph, demotion);
  for (size_t i = 0; i < answers.size(); ++i) {
    const uint32_t node = demoted.origin[i];
    if (wide[node]) {
      withdraw(claims, node, "in the narrower type that the device computes in it would give something else");
    } else if (answers[i] == 0) {
      withdraw(claims, node, cat("plugin ", plugin, " does not claim it"));
    } else if (joins_empty_vectors(graph, graph.nodes[node])) {
      withdraw(claims, node, "it joins tensors of several ranks");
    }
  }
  static const Restriction restriction = read_restriction();
  for (uint32_t node = 0; node < count && !restriction.none; ++node) {
    if (!restriction.allows(graph, graph.nodes[node])) withdraw(claims, node, "LTC_CLAIMS leaves it out");
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
