// The tensors in an argument or a result of an op.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

namespace ltc {

// `value` with change(tensor) in the place of each tensor in it, undefined ones too. What holds no tensor stays as it is.
template <typename Change>
c10::IValue map_tensors(const c10::IValue& value, Change change) {
  if (value.isTensor()) return c10::IValue(change(value.toTensor()));
  if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) tensor = change(tensor);
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      tensors.push_back(tensor ? std::optional<at::Tensor>(change(*tensor)) : std::nullopt);
    }
    return tensors;
  }
  return value;
}

}  // namespace ltc
