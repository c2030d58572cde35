// Element types. The values are those of the C ABI (ltc_dtype), for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ltc {

enum class DType : uint32_t {
  kNone = 0,
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kC64,
  kC128,
  kU16,
  kU32,
  kU64,
  kC32,
  kF8E4M3FN,
  kF8E5M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kF8E8M0FNU
};

inline constexpr uint32_t kDTypeCount = 22;

size_t dtype_size_bytes(DType dtype);
std::string_view dtype_name(DType dtype);  // "f32"
bool is_floating(DType dtype);             // complex excluded
bool is_f8(DType dtype);                   // moved and converted only, but for products
bool is_complex(DType dtype);
bool is_integral(DType dtype);  // bool excluded
inline bool is_whole(DType dtype) { return is_integral(dtype) || dtype == DType::kBool; }
DType dtype_from_name(std::string_view name);  // kNone if unknown

int number_kind(DType dtype);     // 0 bool, 1 integers, 2 floats, 3 complex: each holds those before it
DType complex_of(DType dtype);    // with real parts as wide, c64 for what has none
DType real_of(DType dtype);       // of a complex dtype's parts; else dtype itself
DType promote(DType a, DType b);  // torch.promote_types

// A number handed over by value; which member holds it follows from the dtype: F64 f, I64 and BOOL i, C128 c.
union Scalar {
  int64_t i;
  double f;
  double c[2];
};

}  // namespace ltc
