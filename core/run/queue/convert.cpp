#include "core/run/queue/convert.h"

#include <bit>
#include <cmath>

namespace ltc {
namespace {

struct Bf16 {
  uint16_t bits;
};

template <typename To>
To element(double value) {
  return static_cast<To>(value);
}

// The upper half of a float. To round twice, to float and then to bf16, can be wrong by one step in a tie: so the float keeps in
// its last bit whether anything was cut off.
template <>
Bf16 element<Bf16>(double value) {
  auto single = static_cast<float>(value);
  if (std::isnan(single)) return {0x7fc0};
  auto bits = std::bit_cast<uint32_t>(single);
  if (std::isfinite(single) && static_cast<double>(single) != value) {
    if (std::abs(static_cast<double>(single)) > std::abs(value)) --bits;
    bits |= 1;
  }
  const uint32_t ties_to_even = 0x7fff + (bits >> 16 & 1);
  return {static_cast<uint16_t>((bits + ties_to_even) >> 16)};
}

double number(double value) { return value; }
double number(float value) { return value; }
double number(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

template <typename From, typename To>
void convert_all(const void* from, void* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) static_cast<To*>(to)[i] = element<To>(number(static_cast<const From*>(from)[i]));
}

struct Row {
  DType from, to;
  void (*convert)(const void* from, void* to, int64_t count);
  int64_t parts = 1;  // numbers of an element
};
constexpr Row kRows[] = {
    {DType::kF64, DType::kF32, convert_all<double, float>},     {DType::kF32, DType::kF64, convert_all<float, double>},
    {DType::kF64, DType::kBF16, convert_all<double, Bf16>},     {DType::kBF16, DType::kF64, convert_all<Bf16, double>},
    {DType::kF32, DType::kBF16, convert_all<float, Bf16>},      {DType::kBF16, DType::kF32, convert_all<Bf16, float>},
    {DType::kC128, DType::kC64, convert_all<double, float>, 2}, {DType::kC64, DType::kC128, convert_all<float, double>, 2},
};

}  // namespace

HostValue convert(const HostValue& value, TypeId type) {
  if (type == value.type) return value;
  HostValue result = allocate_host_value(type);
  convert_elements(value, type_of(type).dtype, result.data.get());
  return result;
}

void convert_elements(const HostValue& from, DType dtype, void* to) {
  const Type& type = type_of(from.type);
  for (const Row& row : kRows) {
    if (row.from == type.dtype && row.to == dtype) return row.convert(from.data.get(), to, type.element_count * row.parts);
  }
  fail(Code::kInternal, "no conversion from ", dtype_name(type.dtype), " to ", dtype_name(dtype));
}

}  // namespace ltc
