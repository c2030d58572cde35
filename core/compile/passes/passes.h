// Rewrites of a graph before it is offered to a plugin. Each keeps the contents of every output, the params and their order, and
// needs no knowledge of the plugin. Nodes are pure: equal inputs and attributes give equal results.
#pragma once

#include <vector>

#include "core/compile/passes/graph_stage.h"
#include "core/ir/graph.h"

namespace ltc {

// Reads through a geometry (aten::as_strided) become reshape, slice, permute and expand where exactly those can express them;
// what is left is for plugins that claim strided access. Chains of such nodes fold, and those that change nothing disappear.
void views(Graph& graph);

// Nodes with equal op, attributes and inputs become one.
void cse(Graph& graph);

// Removes nodes nothing reads, marks unread results as not wanted, and renumbers the values in the order of definition.
void dce(Graph& graph);

// Withdraws the permission to donate where param and output do not match any more.
void aliases(Graph& graph);

struct Pass {
  const char* name;
  void (*run)(Graph& graph);
};

inline constexpr Pass kPasses[] = {
    {"views", views},
    {"cse", cse},
    {"dce", dce},
    {"aliases", aliases},
};

// Checks a graph for a defect of the host: its structure in debug builds (verify.h), and if is_verifying() in any build its nodes
// too (verify_nodes.h). Throws Error(kInternal) that names `after`, the step that made the graph.
void verify_if_asked(const Graph& graph, const char* after);

// All of them in that order, each with verify_if_asked before and behind it; LTC_LOG=trace shows the graph after each change.
// Adds a stage for each change to `stages`, if that is given.
void run_passes(Graph& graph, std::vector<GraphStage>* stages = nullptr);

}  // namespace ltc
