#include "torchscript/fusion/row_sums.h"

#include <ATen/WrapDimUtilsMulti.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <vector>

#include "kernels/print/vectors.h"
#include "torchscript/graph/program.h"

namespace ltc::torchscript {
namespace {

// A smaller operand stays in the second-level cache between two loops, and whole rows are added up faster than rows tile by tile.
constexpr int64_t kLeastElements = 1 << 17;

}  // namespace

RowSum find_row_sum(const torch::jit::Node& node) {
  static const auto sum = torch::jit::Symbol::fromQualString("ltc_torchscript::sum");
  static const auto mean = torch::jit::Symbol::fromQualString("ltc_torchscript::mean");
  if (node.kind() != sum && node.kind() != mean) return {};
  if (is_symbolic(node)) return {.why_not = "its sizes differ from run to run"};
  const TensorSpec in = spec_of(*node.input(0)), out = spec_of(*node.output());
  const auto dims = torch::jit::toIValue(node.input(1));
  if (in.dtype != at::kFloat || out.dtype != at::kFloat) return {.why_not = "not of float32"};
  if (!dims || !(dims->isNone() || dims->isIntList())) return {.why_not = "its dims are no constants"};
  // Images may lie channels-last; their rows are none then.
  if (in.sizes.size() == 4) return {.why_not = "an image"};
  const auto list = dims->isNone() ? std::vector<int64_t>() : dims->toIntVector();
  const auto mask =
      at::dim_list_to_bitset(list.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(list), in.sizes.size());
  std::vector<bool> reduced;  // of the dims that have more than one element
  int64_t length = 1, elements = 1;
  for (size_t i = 0; i < in.sizes.size(); ++i) {
    elements *= in.sizes[i];
    if (in.sizes[i] != 1) reduced.push_back(mask[i]);
    if (mask[i]) length *= in.sizes[i];
  }
  if (!std::is_sorted(reduced.begin(), reduced.end())) return {.why_not = "other dims than the last ones"};
  if (length == 0 || length % kernels::kLanes != 0) return {.why_not = "rows of no whole vectors"};
  if (elements < kLeastElements) return {.why_not = "its operand stays in the cache"};
  return {.length = length, .scale = node.kind() == mean ? 1.0 / static_cast<double>(length) : 1.0};
}

}  // namespace ltc::torchscript
