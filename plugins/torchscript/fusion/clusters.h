// Which nodes of a program run as one: element-wise nodes of the same sizes that feed each other or read the same values, and
// what sums, normalises or takes the softmax of rows of them.
#pragma once
#include <vector>

#include "torchscript/fusion/tile_program.h"
#include "torchscript/graph/program.h"

namespace ltc::torchscript {

// All nodes as groups, in an order in which they can run. Each constant, number, and node that tiles cannot compute is alone.
std::vector<Program::Group> find_groups(const Program& program);

struct Cluster {
  TileProgram tiles;
  std::vector<const torch::jit::Value*> inputs;   // operands of a run
  std::vector<const torch::jit::Value*> scalars;  // of the run, read where the host has them
  std::vector<const torch::jit::Value*> outputs;  // its results: what other nodes read
};

// Why a group is not one with what makes its operands; empty where params and constants are all it reads.
const char* why_apart(const Program& program, const Program::Group& group);

// The loop of a fused group.
Cluster build_cluster(const Program& program, const Program::Group& group);

// The clusters, for people: a paragraph for each.
std::string clusters_text(const Program& program);

}  // namespace ltc::torchscript
