#include "core/torch/dispatch/large_numbers.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <limits>

namespace ltc {
namespace {

template <typename T>
constexpr double largest_of() {
  return static_cast<double>(std::numeric_limits<T>::max());
}

// The magnitude up to which numbers convert without overflow.
double largest(c10::ScalarType dtype) {
  switch (c10::toRealValueType(dtype)) {
    case c10::ScalarType::Bool:
    case c10::ScalarType::Double: return std::numeric_limits<double>::infinity();
    case c10::ScalarType::Byte: return largest_of<uint8_t>();
    case c10::ScalarType::Short: return largest_of<int16_t>();
    case c10::ScalarType::UInt16: return largest_of<uint16_t>();
    case c10::ScalarType::Int: return largest_of<int32_t>();
    case c10::ScalarType::UInt32: return largest_of<uint32_t>();
    case c10::ScalarType::Long:
    case c10::ScalarType::UInt64: return 9223372036854774784.0;  // the last double below 2^63
    case c10::ScalarType::Half: return largest_of<c10::Half>();
    case c10::ScalarType::BFloat16: return largest_of<c10::BFloat16>();
    case c10::ScalarType::Float: return largest_of<float>();
    default: return INT8_MAX;  // also of floats of 8 bits
  }
}

bool has_fractions(c10::ScalarType dtype) { return c10::isFloatingType(dtype) || c10::isComplexType(dtype); }

}  // namespace

bool fits(const Number& number, c10::ScalarType dtype) {
  switch (number.dtype) {
    case DType::kI64: {
      if (number.value.i < 0 && c10::isIntegralType(dtype, false) && !c10::isSignedType(dtype)) return false;
      return dtype == c10::ScalarType::Long || std::abs(static_cast<double>(number.value.i)) <= largest(dtype);
    }
    case DType::kF64: {
      const bool is_finite = std::isfinite(number.value.f);
      return is_finite ? std::abs(number.value.f) <= largest(dtype) : has_fractions(dtype) || dtype == c10::ScalarType::Bool;
    }
    case DType::kU64: return false;
    default: return true;
  }
}

std::optional<Number> as_recorded(const Number& number, c10::ArrayRef<c10::ScalarType> operands) {
  if (number.dtype != DType::kU64) return number;
  const auto all = [&](bool (*is)(c10::ScalarType)) {
    bool any = false;
    for (const c10::ScalarType dtype : operands) {
      if (dtype == c10::ScalarType::Bool) continue;  // a mask
      if (!is(dtype)) return false;
      any = true;
    }
    return any;
  };
  if (all([](c10::ScalarType dtype) { return c10::isIntegralType(dtype, false); })) return to_number(number.value.i);
  const auto value = static_cast<uint64_t>(number.value.i);
  const auto as_double = static_cast<double>(value);
  const bool is_exact = as_double < 18446744073709551616.0 && static_cast<uint64_t>(as_double) == value;
  if (is_exact && all(has_fractions)) return to_number(as_double);
  return std::nullopt;
}

}  // namespace ltc
