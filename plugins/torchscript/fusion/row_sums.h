// Sums and means of rows that join the element-wise cluster whose result they add up, so that it need not be written and read.
// Partial sums are added in double, so results depend neither on threads nor on compiled kernels.
#pragma once
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <optional>

namespace ltc::torchscript {

struct RowSum {
  int64_t length = 0;  // of a row; 0: the node adds up no rows, or `why_not` says why it stands apart
  double scale = 1;
  const char* why_not = nullptr;
};

RowSum find_row_sum(const torch::jit::Node& node);

}  // namespace ltc::torchscript
