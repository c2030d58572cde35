// Conversions between dtypes, and the ops that convert.
#include "convert.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "strided.h"

namespace interpreter {
namespace {

// Half to even; NaN stays NaN.
uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if (x != x) return 0x7FC0;
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float from_bf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t to_f16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (x != x) return 0x7E00;
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520, which rounds to infinity
  if (magnitude < 0x38800000) {  // subnormal: an addition to 0.5 rounds to multiples of 2^-24
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(0.5f)));
  }
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13));
}
float from_f16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
  if (exponent == 0) return std::copysign(std::ldexp(static_cast<float>(fraction), -24), std::bit_cast<float>(sign | 0x3F800000));
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <typename T>
T read(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void write(char* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

Number integer(int64_t value) { return {false, value, 0}; }
Number real(double value) { return {true, 0, value}; }

}  // namespace

Number load(ltc_dtype dtype, const char* from) {
  switch (dtype) {
    case LTC_BOOL:
    case LTC_U8: return integer(read<uint8_t>(from));
    case LTC_I8: return integer(read<int8_t>(from));
    case LTC_I16: return integer(read<int16_t>(from));
    case LTC_I32: return integer(read<int32_t>(from));
    case LTC_I64: return integer(read<int64_t>(from));
    case LTC_F16: return real(from_f16(read<uint16_t>(from)));
    case LTC_BF16: return real(from_bf16(read<uint16_t>(from)));
    case LTC_F32: return real(read<float>(from));
    default: return real(read<double>(from));
  }
}

void store(const Number& number, ltc_dtype dtype, char* to) {
  const auto single = [&] { return number.is_float ? static_cast<float>(number.f) : static_cast<float>(number.i); };
  switch (dtype) {
    case LTC_BOOL: return write<bool>(to, number.is_float ? number.f != 0 : number.i != 0);
    case LTC_U8:
    case LTC_I8: return write(to, static_cast<int8_t>(number.as_integer()));
    case LTC_I16: return write(to, static_cast<int16_t>(number.as_integer()));
    case LTC_I32: return write(to, static_cast<int32_t>(number.as_integer()));
    case LTC_I64: return write(to, number.as_integer());
    case LTC_F16: return write(to, to_f16(single()));
    case LTC_BF16: return write(to, to_bf16(single()));
    case LTC_F32: return write(to, single());
    default: return write(to, number.as_float());
  }
}

Number number_of(const Call& call, std::string_view name, size_t& input) {
  const Attribute& attribute = call.attribute(name);
  if (attribute.kind == 0) {
    const Array& operand = call.in[input++];
    return load(operand.dtype(), operand.data);
  }
  return attribute.kind == LTC_ATTR_FLOAT ? real(std::bit_cast<double>(attribute.values[0])) : integer(attribute.values[0]);
}

bool numbers_are_real(const Node& node) {
  for (const uint32_t value : node.inputs()) {
    if (node.graph.is_scalar(value) && node.graph.type(value).dtype == LTC_C128) return false;
  }
  for (const ltc_attr* attr : std::span(node.abi.attrs, node.abi.attr_count)) {
    if (attr->kind == LTC_ATTR_FLOATS) return false;
  }
  return true;
}

namespace {

void convert(const Call& call) {
  const Array &in = call.in[0], &out = call.out[0];
  const uint64_t from = element_bytes(in.dtype()), to = element_bytes(out.dtype());
  for (uint64_t i = 0; i < static_cast<uint64_t>(out.count()); ++i) {
    store(load(in.dtype(), in.data + i * from), out.dtype(), out.data + i * to);
  }
}

void view_as(const Call& call) { copy_all(call.out[0], call.in[0]); }

Kernels with_complex(Kernels kernels, Kernel kernel) {
  kernels.by_dtype[LTC_C64] = kernel;
  return kernels;
}

}  // namespace

const Table conversion_ops{
    {"aten::_to_copy", {"N:A", moves(convert)}},
    {"aten::view.dtype", {"A:A", with_complex(moves(view_as), view_as)}},
};

}  // namespace interpreter
