#include "torchscript/ops/refusals.h"

#include <algorithm>
#include <string_view>

#include "torchscript/graph/schema.h"

namespace ltc::torchscript {
namespace {

// Operators that check floating-point values: probabilities, deviations, matrices that must have a factorization.
constexpr std::string_view kCheckingFloats[] = {
    "aten::linalg_",
    "aten::_linalg_",
    "aten::cholesky",
    "aten::lu_",
    "aten::triangular_solve",
    "aten::inverse",
    "aten::geqrf",
    "aten::ormqr",
    "aten::bernoulli",
    "aten::normal",
    "aten::poisson",
    "aten::binomial",
    "aten::_sample",
    "aten::multinomial",
    "aten::histc",
    "aten::_assert",
    "aten::binary_cross_entropy",
};

bool is_integral(const torch::jit::Value& value) {
  const auto type = value.type()->cast<c10::TensorType>();
  if (!type || !type->scalarType()) return false;
  return c10::isIntegralType(*type->scalarType(), /*includeBool=*/false);
}

bool reads_integers(const torch::jit::Node& node) {
  return std::ranges::any_of(node.inputs(), [](const torch::jit::Value* input) {
    const torch::jit::Node& maker = *input->node();
    return maker.kind() == torch::jit::prim::ListConstruct ? reads_integers(maker) : is_integral(*input);
  });
}

}  // namespace

bool may_refuse(const Program& program, const torch::jit::Node& node) {
  const auto origin = program.origins.find(&node);
  if (origin == program.origins.end()) return false;  // a constant, a number or a list
  const c10::OperatorHandle& op = origin->second.op;
  const std::string_view name = op.schema().name();
  if (std::ranges::any_of(kCheckingFloats, [&](std::string_view prefix) { return name.starts_with(prefix); })) return true;
  if (makes_view(op.schema()) || !reads_integers(node)) return false;
  // Integers are indices; element by element only a division refuses one.
  const auto contains = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return !op.hasTag(at::Tag::pointwise) || contains("div") || contains("remainder") || contains("fmod");
}

}  // namespace ltc::torchscript
