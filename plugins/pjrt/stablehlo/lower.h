// Graphs of claimed nodes as programs of StableHLO.
#pragma once
#include "pjrt/stablehlo/module.h"

namespace ltc::pjrt {

// An index tensor of a node, whose elements must lie in [0, size).
struct IndexCheck {
  uint32_t node;
  int64_t dim, size;
};

// What a run of a program takes and gives.
struct Signature {
  std::vector<Type> inputs;        // the params without scalars
  std::vector<uint32_t> becomes;   // by input: the output that its memory may become, or LTC_NONE
  uint32_t scalar_count = 0;       // passed as 64 bits each, behind the inputs, if there are any
  std::vector<Type> outputs;       // behind them, if there are checks, I64[2]: which check failed, or -1; a bad index
  std::vector<IndexCheck> checks;  // in the order of nodes
};

struct Lowered {
  std::string text;
  Signature signature;
};

// By node: whether it can be lowered.
std::vector<bool> find_claims(const ltc_graph& graph);

// Throws abi::Failure, with the node where one cannot be lowered.
Lowered lower(const ltc_graph& graph);

}  // namespace ltc::pjrt
