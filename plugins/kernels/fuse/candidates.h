// First half of fusion: which values are worth computing once.
#pragma once
#include <vector>

#include "kernels/graph/graph.h"
#include "kernels/graph/options.h"

namespace ltc::kernels {

struct Candidates {
  std::vector<bool> is_live;       // by node: something that is wanted needs it
  std::vector<bool> is_candidate;  // by value
  std::vector<bool> is_forced;     // by value: must lie in a buffer, whatever cluster it is in
};

Candidates find_candidates(const Graph& graph, const Options& options);

// Whether the node has a cluster of its own.
bool is_unfusable(const Graph& graph, const Node& node, const Options& options);
bool is_reduction(const Graph& graph, const Node& node, const Options& options);

}  // namespace ltc::kernels
