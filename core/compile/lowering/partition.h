// Cuts a graph into the parts that the plugin runs and the parts that the host runs.
#pragma once

#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace ltc {

// A part that runs as one, with how it meets the whole: "outer" values are those of the graph that was cut.
struct Segment {
  bool on_device = false;
  Graph graph;
  std::vector<uint32_t> nodes;    // outer index of each node
  std::vector<ValueId> inputs;    // outer value of each buffer param, in order
  std::vector<uint32_t> scalars;  // outer scalar param of each scalar param, counted among the scalar params
  std::vector<ValueId> outputs;   // outer value of each output
};

// `clusters` per node: 0 host, 1 device, k >= 2 device, in one segment with all others of k; a cluster for which that cannot be
// is set to 0 as a whole. On return `clusters` says where the nodes went.
//
// Segments in the order to run. Each value that another segment or the caller reads is an output of the segment that makes it.
// A device segment keeps a param's permission to donate if nothing later reads the param. With every node on the device the one
// segment's graph is the graph.
std::vector<Segment> partition(const Graph& graph, std::vector<uint32_t>& clusters);

}  // namespace ltc
