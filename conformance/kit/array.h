// Values on the host: a type and dense row-major bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "core/base/error.h"
#include "core/ir/dtype.h"
#include "ltc/plugin.h"

namespace ltc::conformance {

using Sizes = std::vector<int64_t>;

inline constexpr DType kAllDTypes[] = {
    DType::kBool, DType::kU8,  DType::kI8,       DType::kI16,    DType::kI32,        DType::kI64,        DType::kF16,
    DType::kBF16, DType::kF32, DType::kF64,      DType::kC64,    DType::kC128,       DType::kU16,        DType::kU32,
    DType::kU64,  DType::kC32, DType::kF8E4M3FN, DType::kF8E5M2, DType::kF8E4M3FNUZ, DType::kF8E5M2FNUZ, DType::kF8E8M0FNU};

int64_t element_count(const Sizes& sizes);
std::string text(const Sizes& sizes);  // "[2,3]"

struct Array {
  DType dtype = DType::kF32;
  Sizes sizes;
  std::vector<std::byte> bytes;

  Array() = default;
  Array(DType dtype, Sizes sizes);  // zeros

  template <typename T>
  static Array of(DType dtype, Sizes sizes, const std::vector<T>& values) {
    Array result(dtype, std::move(sizes));
    ensure(result.bytes.size() == values.size() * sizeof(T), "an array of ", result.bytes.size(), " bytes from ", values.size(),
           " values");
    if (!values.empty()) std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
    return result;
  }
  static Array floats(std::vector<float> values) {
    const auto count = static_cast<int64_t>(values.size());
    return of(DType::kF32, {count}, values);
  }
  static Array floats(Sizes sizes, std::vector<float> values) { return of(DType::kF32, std::move(sizes), values); }

  int64_t count() const { return element_count(sizes); }

  template <typename T>
  std::vector<T> values() const {
    std::vector<T> result(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  // Elements as numbers, whatever the dtype; real dtypes only. A store rounds to the nearest, integers wrap.
  double real(int64_t i) const;
  int64_t integer(int64_t i) const;
  void set_real(int64_t i, double value);
  void set_integer(int64_t i, int64_t value);

  std::string element_text(int64_t i) const;
};

// A type as an ABI struct; borrows the array's or sizes' memory.
ltc_type abi_type(DType dtype, const Sizes& sizes);

bool is_signed_int(DType dtype);

// Numbers of the 16-bit float types.
float half_to_float(uint16_t bits);
uint16_t half_from_double(double value);
float bfloat_to_float(uint16_t bits);
uint16_t bfloat_from_double(double value);

}  // namespace ltc::conformance
