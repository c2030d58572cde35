// Softmax and layer norms of rows that run with the element-wise nodes around them: some rows at a time, so that values on their
// way from one to the next stay in the cache. One stays apart if no cluster makes its rows: joining would be slower.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <vector>

#include "torchscript/fusion/tile_program.h"

namespace ltc::torchscript {

struct RowOp {
  int64_t length = 0;  // of a row; 0: the node is no such step, or `why_not` says why it stands apart
  RowFunction function = RowFunction::kSoftmax;
  double eps = 0;
  std::vector<int64_t> statistics = {};  // sizes of the results that have an element for each row
  const char* why_not = nullptr;
};

RowOp find_row_op(const torch::jit::Node& node);

// The row operands of such a step: a weight and then a bias, as far as it has them.
std::vector<const torch::jit::Value*> row_operands(const torch::jit::Node& node);

}  // namespace ltc::torchscript
