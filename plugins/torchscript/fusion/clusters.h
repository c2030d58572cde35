// Which nodes of a program run as one: element-wise nodes of the same sizes that feed each other or read the same values.
#pragma once
#include <vector>

#include "../lower.h"
#include "tile_program.h"

namespace ltc::torchscript {

using NodeList = std::vector<const torch::jit::Node*>;

// The nodes of a program in an order in which they can run; those of one list run together. Constants, numbers and nodes that
// tiles cannot compute are lists of one.
std::vector<NodeList> find_clusters(const Program& program);

// Whether tiles can compute the node.
bool is_fusable(const Program& program, const torch::jit::Node& node);

struct Cluster {
  TileProgram tiles;
  std::vector<const torch::jit::Value*> inputs;   // operands of a run
  std::vector<const torch::jit::Value*> outputs;  // its results: what other nodes read
};

// What runs as one, for people: a paragraph per cluster.
std::string clusters_text(const Program& program);

// Of one of the lists, all nodes fusable.
Cluster build_cluster(const Program& program, const NodeList& nodes);

}  // namespace ltc::torchscript
