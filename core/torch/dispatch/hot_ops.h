// Python's operators, recorded without PyTorch's dispatcher.
#pragma once

#include <ATen/core/Tensor.h>

#include "core/base/api.h"
#include "core/torch/tensor/number.h"

namespace ltc {

enum class Operator : uint8_t { kAdd, kSub, kMul, kDiv };
inline constexpr size_t kOperatorCount = 4;

// `a op b`; `number` is an int or a float of Python's. Undefined where somebody else is to see the call or has to decide
// something: a mode, a transform, a profiler, autograd, a barrier, an error. PyTorch's operator does that then.
LTC_API at::Tensor record_operator(Operator op, const at::Tensor& a, const at::Tensor& b);
LTC_API at::Tensor record_operator(Operator op, const at::Tensor& a, const Number& number);

}  // namespace ltc
