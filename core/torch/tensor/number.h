// Numbers on their way into a trace: by value, as one of the four dtypes that Python's numbers have.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/TensorImpl.h>

#include <bit>

#include "core/ir/dtype.h"

namespace ltc {

struct Number {
  DType dtype = DType::kNone;  // I64, F64, BOOL, C128; none: no number. U64: one above I64, its bits in `i`, which no trace holds
  Scalar value = {};

  // By their bits: -0.0 is not 0.0.
  bool operator==(const Number& other) const {
    return dtype == other.dtype && value.i == other.value.i &&
           (dtype != DType::kC128 || std::bit_cast<int64_t>(value.c[1]) == std::bit_cast<int64_t>(other.value.c[1]));
  }
};

inline Number to_number(int64_t value) { return {DType::kI64, {.i = value}}; }
inline Number to_number(double value) { return {DType::kF64, {.f = value}}; }
inline Number to_number(bool value) { return {DType::kBool, {.i = value}}; }
inline Number to_number(uint64_t value) {
  return {value > INT64_MAX ? DType::kU64 : DType::kI64, {.i = static_cast<int64_t>(value)}};
}
inline Number to_number(c10::complex<double> value) { return {DType::kC128, {.c = {value.real(), value.imag()}}}; }

inline Number to_number(const c10::Scalar& number) {
  if (number.isFloatingPoint()) return to_number(number.toDouble());
  if (number.isBoolean()) return to_number(number.toBool());
  if (number.isComplex()) return to_number(number.toComplexDouble());
  return number.type() == c10::ScalarType::UInt64 ? to_number(number.toUInt64()) : to_number(number.toLong());
}

inline c10::Scalar to_scalar(const Number& number) {
  switch (number.dtype) {
    case DType::kF64: return number.value.f;
    case DType::kC128: return c10::complex<double>(number.value.c[0], number.value.c[1]);
    case DType::kBool: return number.value.i != 0;
    case DType::kU64: return static_cast<uint64_t>(number.value.i);
    default: return number.value.i;
  }
}

// None for what is no number.
inline Number to_number(const c10::IValue& value) {
  if (value.isDouble()) return to_number(value.toDouble());
  if (value.isInt()) return to_number(value.toInt());
  if (value.isBool()) return to_number(value.toBool());
  if (value.isUnsigned()) return to_number(value.toUInt());
  return value.isScalar() ? to_number(value.toScalar()) : Number();
}

// A Python number that PyTorch has put into a CPU tensor.
inline bool is_number_tensor(const c10::TensorImpl* tensor) {
  return tensor->is_wrapped_number() && tensor->device_type() == at::kCPU;
}

}  // namespace ltc
