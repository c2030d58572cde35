// ltc_graph -> torch::jit::Graph.
#pragma once
#include "torchscript/graph/program.h"

namespace ltc::torchscript {

// Node by node, as the graph has it. `sizes`: those that differ from run to run, or null. Refuses a large graph with UNSUPPORTED
// if most of it is symbolic: its rewrites are worth more than a program that serves all sizes.
Program lower(const ltc_graph& graph, c10::Device device, const ltc_symbolic_sizes* sizes = nullptr);

// Rewrites the program for speed and forms its groups. On devices of libtorch's other than the CPU it stays as it is.
void optimize(Program& program);

// 1 per node that can be lowered and run, else 0.
void claim(const ltc_graph& graph, c10::Device device, uint32_t* cluster);

}  // namespace ltc::torchscript
