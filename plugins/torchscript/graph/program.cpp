#include "torchscript/graph/program.h"

#include <c10/util/StringUtil.h>

namespace ltc::torchscript {

using torch::jit::Symbol;
using torch::jit::Value;

Symbol number_kind() {
  static const Symbol kind = Symbol::fromQualString("ltc_torchscript::number");
  return kind;
}

c10::TypePtr tensor_type(const TensorSpec& spec, c10::Device device) {
  return c10::TensorType::create(spec.dtype, device, c10::VaryingShape<int64_t>(spec.sizes),
                                 c10::VaryingShape<int64_t>(spec.sizes.size()), std::nullopt);
}

TensorSpec spec_of(const torch::jit::Value& value) {
  const auto* type = value.type()->castRaw<c10::TensorType>();
  if (!type || !type->scalarType() || !type->sizes().concrete_sizes()) return {};
  return {*type->scalarType(), *type->sizes().concrete_sizes()};
}

const Value* number_source(const Value& value) {
  return value.node()->kind() == number_kind() ? value.node()->input(0) : nullptr;
}

std::string to_string(const TensorSpec& spec) { return c10::str(spec.dtype, at::IntArrayRef(spec.sizes)); }

}  // namespace ltc::torchscript
