#include "torchscript/fusion/row_ops.h"

#include <ATen/WrapDimUtils.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "torchscript/graph/graph_editor.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Symbol;
using torch::jit::Value;

constexpr int64_t kLongestRow = 1 << 16;  // what a thread keeps of longer ones is in no cache of its own

bool is_float(const Value& value) { return spec_of(value).dtype == at::kFloat; }

RowOp find_softmax(const Node& node) {
  const auto dim = constant_int(*node.input(1));
  const auto widens = torch::jit::toIValue(node.input(2));
  const TensorSpec in = spec_of(*node.input(0));
  const auto rank = static_cast<int64_t>(in.sizes.size());
  if (!dim || !widens || !widens->isBool() || widens->toBool()) return {.why_not = "other than of float32"};
  if (rank == 0 || at::maybe_wrap_dim(*dim, rank) != rank - 1) return {.why_not = "another dim than the last one"};
  return {.length = in.sizes.back(), .function = RowFunction::kSoftmax};
}

RowOp find_normalize(const Node& node) {
  const auto shape = constant_ints(*node.input(1));
  const auto eps = torch::jit::toIValue(node.input(4));
  if (!shape || shape->empty() || !eps || !eps->isDouble()) return {.why_not = "its shape is no constant"};
  const auto is_absent = [](const Value* value) { return value->type()->kind() == c10::TypeKind::NoneType; };
  const Value *const weight = node.input(2), *const bias = node.input(3);
  if (is_absent(weight) && !is_absent(bias)) return {.why_not = "a bias without a weight"};
  for (const Value* value : row_operands(node)) {
    if (spec_of(*value) != TensorSpec{at::kFloat, *shape}) return {.why_not = "weights that are no row of float32"};
  }
  std::vector<int64_t> sizes = spec_of(*node.input(0)).sizes;
  if (sizes.size() < shape->size() || !std::equal(shape->rbegin(), shape->rend(), sizes.rbegin()))
    return {.why_not = "other rows"};
  std::fill_n(sizes.rbegin(), shape->size(), 1);
  return {.length = c10::multiply_integers(*shape),
          .function = RowFunction::kNormalize,
          .eps = eps->toDouble(),
          .statistics = std::move(sizes)};
}

}  // namespace

RowOp find_row_op(const Node& node) {
  static const auto softmax = Symbol::fromQualString("ltc_torchscript::_softmax");
  static const auto normalize = Symbol::fromQualString("ltc_torchscript::native_layer_norm");
  if (node.kind() != softmax && node.kind() != normalize) return {};
  if (is_symbolic(node)) return {.why_not = "its sizes differ from run to run"};
  if (!is_float(*node.input(0)) || !is_float(*node.output(0))) return {.why_not = "not of float32"};
  const RowOp step = node.kind() == softmax ? find_softmax(node) : find_normalize(node);
  if (step.why_not) return step;
  if (step.length == 0) return {.why_not = "rows of nothing"};
  if (step.length > kLongestRow) return {.why_not = "rows that no cache of a processor's own holds"};
  return step;
}

std::vector<const Value*> row_operands(const Node& node) {
  std::vector<const Value*> operands;
  for (size_t i = 2; i < std::min<size_t>(node.inputs().size(), 4); ++i) {
    if (node.input(i)->type()->kind() == c10::TypeKind::TensorType) operands.push_back(node.input(i));
  }
  return operands;
}

}  // namespace ltc::torchscript
