#include "core/compile/claims.h"

#include <charconv>
#include <optional>
#include <string>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/compile/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"

namespace ltc {
namespace {

struct Restriction {
  bool none = true;
  std::optional<uint64_t> half_seed;  // empty: the minimal opset alone

  bool allows(const Graph& graph, const Node& node) const {
    if (none || decompose::is_minimal(graph, node)) return true;
    return half_seed && hash_bytes(*half_seed, op_name(node.op).data(), op_name(node.op).size()) % 2 == 0;
  }
};

Restriction read_restriction() {
  const std::string text = env::get(env::kClaims);
  if (text.empty() || text == "all") return {};
  if (text == "minimal") return {false, std::nullopt};
  uint64_t seed = 0;
  const std::string_view prefix = "half:";
  const char* const end = text.data() + text.size();
  if (text.starts_with(prefix) && std::from_chars(text.data() + prefix.size(), end, seed).ptr == end) return {false, seed};
  fail(Code::kInvalidArgument, env::kClaims, " is '", text, "'; it may be all, minimal or half:SEED");
}

}  // namespace

std::vector<uint32_t> ask_claims(const Graph& graph, host::PluginDevice& device) {
  std::vector<uint32_t> claimed(graph.nodes.size(), 0);
  if (graph.nodes.empty() || !device.can_compute()) return claimed;
  claimed = device.claims(*AbiGraph(graph).get());
  static const Restriction restriction = read_restriction();
  if (restriction.none) return claimed;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!restriction.allows(graph, graph.nodes[i])) claimed[i] = 0;
  }
  return claimed;
}

}  // namespace ltc
