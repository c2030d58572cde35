// Graphs of claimed nodes as programs of StableHLO.
#pragma once
#include "pjrt/stablehlo/module.h"

namespace ltc::pjrt {

// The elements of a node's index tensor must lie in [0, size).
struct IndexCheck {
  uint32_t node;
  int64_t dim, size;
};

// The inputs and outputs of a run.
struct Signature {
  std::vector<Type> inputs;       // the params without scalars
  std::vector<uint32_t> becomes;  // by input: the output that its memory may become, or LTC_NONE
  uint32_t scalar_count = 0;      // all in one I64 array behind the inputs
  std::vector<Type> outputs;      // with checks, I64[2] comes behind: the first that failed, or -1, and a bad index
  std::vector<IndexCheck> checks;
  std::vector<uint8_t> good_outputs;  // by output: 1 where a bad index does it no harm
};

struct Lowered {
  std::string text;
  Signature signature;
};

// By node: 1 where it can be lowered, else 0.
void claim(const ltc_graph& graph, uint32_t* cluster);

// Throws plugin::Failure, with the node where one cannot be lowered.
Lowered lower(const ltc_graph& graph);

}  // namespace ltc::pjrt
