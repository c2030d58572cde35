// ltc_graph -> torch::jit::Graph.
#pragma once
#include "torchscript/graph/program.h"

namespace ltc::torchscript {

// Node by node, as the graph has it.
Program lower(const ltc_graph& graph, c10::Device device);

// Rewrites the program for speed and forms its groups. On devices of libtorch's other than the CPU it stays as it is.
void optimize(Program& program);

// 1 per node that can be lowered and run, else 0.
void claim(const ltc_graph& graph, c10::Device device, uint32_t* cluster);

}  // namespace ltc::torchscript
