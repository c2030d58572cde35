// The tensors in an argument or a result of an op.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>

#include <algorithm>

namespace ltc {

// `value` with change(tensor) in the place of each tensor in it, undefined ones too. Values without tensors stay as they are. A
// list is recognised by its elements: the TorchScript interpreter has a list type of its own for tensors that may be absent.
template <typename Change>
c10::IValue map_tensors(const c10::IValue& value, Change change) {
  if (value.isTensor()) return c10::IValue(change(value.toTensor()));
  if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) tensor = change(tensor);
    return tensors;
  }
  if (!value.isList() || std::ranges::none_of(value.toListRef(), &c10::IValue::isTensor)) return value;
  c10::List<std::optional<at::Tensor>> tensors;
  for (const c10::IValue& element : value.toListRef()) {
    tensors.push_back(element.isTensor() ? std::optional<at::Tensor>(change(element.toTensor())) : std::nullopt);
  }
  return tensors;
}

// Visits each tensor that is given among the arguments.
template <typename Values, typename Visit>
void for_each_tensor(const Values& values, const Visit& visit) {
  const auto visit_defined = [&](const at::Tensor& tensor) {
    if (tensor.defined()) visit(tensor);
  };
  for (const c10::IValue& value : values) {
    if (value.isTensor()) visit_defined(value.toTensor());
    if (!value.isList()) continue;
    for (const c10::IValue& element : value.toListRef()) {
      if (element.isTensor()) visit_defined(element.toTensor());
    }
  }
}

}  // namespace ltc
