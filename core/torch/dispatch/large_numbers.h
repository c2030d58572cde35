// Numbers that a dtype may not hold. Kernels refuse some, convert others, and only they say which: such a call is asked from the
// kernel, for each number anew, and a factory is checked where it is recorded.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cmath>
#include <optional>

#include "core/torch/tensor/number.h"

namespace ltc {

// Whether every dtype holds it, at least rounded. Quick; false for some that all do hold.
inline bool is_small(const Number& number) {
  if (number.dtype == DType::kI64) return number.value.i >= 0 && number.value.i <= INT8_MAX;
  if (number.dtype == DType::kF64) return std::abs(number.value.f) <= INT8_MAX;
  return number.dtype != DType::kU64;
}

// Whether it converts to the dtype without overflow. False for all of U64.
bool fits(const Number& number, c10::ScalarType dtype);

// A number that a trace holds and that operands of these dtypes compute with as with this one. One above I64 is its bits among
// integers, as PyTorch wraps it, and a double that is equal among floats. Nothing if there is none.
std::optional<Number> as_recorded(const Number& number, c10::ArrayRef<c10::ScalarType> operands);

}  // namespace ltc
