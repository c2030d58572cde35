// Computes what a plugin does not claim with smaller ops that it does, down to the minimal opset.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/decompose/support/call.h"

namespace ltc::decompose {

// Per node of a graph, 0 if the plugin does not claim it.
using AskClaims = std::function<std::vector<uint32_t>(const Graph&)>;

// The graph with each unclaimed node replaced for which there are rules that lead, in as many steps as it takes, to claimed ones
// only. Any other node is left as it is: the host runs an op whole rather than its parts; so are the `kept` ones, by node (empty:
// none). Asks for claims once per step. Returns whether anything was replaced. Throws Error(kInternal) for a rule that yields
// other sizes than its op.
bool decompose(Graph& graph, const AskClaims& claims, std::vector<bool> kept = {});

// Whether the node is of the minimal opset, in canonical form.
bool is_minimal(const Graph& graph, const Node& node);

// The graph with everything taken apart to the minimal opset for which there are rules.
Graph minimal_form(Graph graph);

// Null if no rule computes the op.
Rule find_rule(std::string_view op);

// All rules, by family; the order of the files in this folder.
std::vector<Decomposition> all_decompositions();

}  // namespace ltc::decompose
