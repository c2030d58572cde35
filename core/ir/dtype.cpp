#include "core/ir/dtype.h"

namespace ltc {
namespace {

struct Row {
  std::string_view name;
  size_t size_bytes;
};
constexpr Row kRows[kDTypeCount] = {
    {"none", 0}, {"bool", 1},     {"u8", 1},     {"i8", 1},         {"i16", 2},        {"i32", 4},      {"i64", 8}, {"f16", 2},
    {"bf16", 2}, {"f32", 4},      {"f64", 8},    {"c64", 8},        {"c128", 16},      {"u16", 2},      {"u32", 4}, {"u64", 8},
    {"c32", 4},  {"f8e4m3fn", 1}, {"f8e5m2", 1}, {"f8e4m3fnuz", 1}, {"f8e5m2fnuz", 1}, {"f8e8m0fnu", 1}};

}  // namespace

size_t dtype_size_bytes(DType dtype) { return kRows[static_cast<uint32_t>(dtype)].size_bytes; }

std::string_view dtype_name(DType dtype) { return kRows[static_cast<uint32_t>(dtype)].name; }

DType dtype_from_name(std::string_view name) {
  for (uint32_t i = 1; i < kDTypeCount; ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return DType::kNone;
}

bool is_floating(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64 || is_f8(dtype);
}
bool is_f8(DType dtype) { return dtype >= DType::kF8E4M3FN && dtype <= DType::kF8E8M0FNU; }
bool is_complex(DType dtype) { return dtype == DType::kC64 || dtype == DType::kC128 || dtype == DType::kC32; }
bool is_integral(DType dtype) {
  return dtype != DType::kNone && dtype != DType::kBool && !is_floating(dtype) && !is_complex(dtype);
}

int number_kind(DType dtype) { return dtype == DType::kBool ? 0 : is_complex(dtype) ? 3 : is_floating(dtype) ? 2 : 1; }

DType complex_of(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kC128 ? DType::kC128 : dtype == DType::kF16 ? DType::kC32 : DType::kC64;
}

DType real_of(DType dtype) {
  if (!is_complex(dtype)) return dtype;
  return dtype == DType::kC128 ? DType::kF64 : dtype == DType::kC32 ? DType::kF16 : DType::kF32;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const int kind_a = number_kind(a), kind_b = number_kind(b);
  if (kind_a != kind_b) {
    const DType high = kind_a > kind_b ? a : b, low = kind_a > kind_b ? b : a;
    const bool widens = number_kind(high) == 3 && (low == DType::kF64 || (high == DType::kC32 && low == DType::kF32));
    return widens ? complex_of(low) : high;
  }
  if (kind_a == 3) return a == DType::kC128 || b == DType::kC128 ? DType::kC128 : DType::kC64;
  if (kind_a == 2) return a == DType::kF64 || b == DType::kF64 ? DType::kF64 : DType::kF32;
  // An unsigned type of 8 bits meets a signed one of the same size in the next larger one.
  const size_t size_a = dtype_size_bytes(a), size_b = dtype_size_bytes(b);
  if (size_a == size_b) return DType::kI16;
  return size_a > size_b ? a : b;
}

}  // namespace ltc
