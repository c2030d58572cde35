#include "conformance/kit/array.h"

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <sstream>

#include "core/host/sized.h"

namespace ltc::conformance {
namespace {

template <typename T>
T load(const Array& array, int64_t i) {
  T value;
  std::memcpy(&value, array.bytes.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(Array& array, int64_t i, T value) {
  std::memcpy(array.bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
}

// To nearest, ties to even, of a float with `fraction_bits` and a smallest exponent of a 16-bit format.
uint16_t narrow(double value, int fraction_bits, int smallest_exponent, int largest_exponent) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto infinity = static_cast<uint16_t>((0x7fff >> fraction_bits) << fraction_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1u << (fraction_bits - 1));
  if (value == 0) return sign;
  int exponent = 0;
  (void)std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, smallest_exponent);
  const double unit = std::ldexp(1.0, exponent - fraction_bits);
  const auto units = static_cast<uint64_t>(std::isinf(value) ? 0 : std::nearbyint(std::fabs(value) / unit));
  const double rounded = static_cast<double>(units) * unit;
  if (std::isinf(value) || rounded >= std::ldexp(2.0, largest_exponent)) return sign | infinity;
  // The fraction's carry runs into the exponent, as it should.
  const auto biased = static_cast<uint64_t>(exponent - smallest_exponent);
  return static_cast<uint16_t>(sign | ((biased << fraction_bits) + units));
}

}  // namespace

int64_t element_count(const Sizes& sizes) { return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies()); }

std::string text(const Sizes& sizes) {
  std::string result = "[";
  for (size_t i = 0; i < sizes.size(); ++i) result += (i ? "," : "") + std::to_string(sizes[i]);
  return result + "]";
}

Array::Array(DType type, Sizes shape)
    : dtype(type), sizes(std::move(shape)), bytes(static_cast<size_t>(element_count(sizes)) * dtype_size_bytes(dtype)) {}

ltc_type abi_type(DType dtype, const Sizes& sizes) {
  static constexpr int64_t kNoSizes = 0;
  auto type = host::sized<ltc_type>();
  type.dtype = static_cast<ltc_dtype>(dtype);
  type.rank = static_cast<uint32_t>(sizes.size());
  type.sizes = sizes.empty() ? &kNoSizes : sizes.data();
  return type;
}

bool is_signed_int(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
}

float half_to_float(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31 ? (fraction ? NAN : INFINITY)
                          : exponent     ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                                         : std::ldexp(static_cast<float>(fraction), -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}
uint16_t half_from_double(double value) { return narrow(value, 10, -14, 15); }
float bfloat_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t bfloat_from_double(double value) { return narrow(value, 7, -126, 127); }

double Array::real(int64_t i) const {
  switch (dtype) {
    case DType::kF16: return half_to_float(load<uint16_t>(*this, i));
    case DType::kBF16: return bfloat_to_float(load<uint16_t>(*this, i));
    case DType::kF32: return load<float>(*this, i);
    case DType::kF64: return load<double>(*this, i);
    case DType::kU64: return static_cast<double>(load<uint64_t>(*this, i));
    default: return static_cast<double>(integer(i));
  }
}

int64_t Array::integer(int64_t i) const {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8: return load<uint8_t>(*this, i);
    case DType::kI8: return load<int8_t>(*this, i);
    case DType::kI16: return load<int16_t>(*this, i);
    case DType::kU16: return load<uint16_t>(*this, i);
    case DType::kI32: return load<int32_t>(*this, i);
    case DType::kU32: return load<uint32_t>(*this, i);
    case DType::kI64:
    case DType::kU64: return load<int64_t>(*this, i);
    default: {
      const double value = real(i);
      return std::fabs(value) < 9.2e18 ? static_cast<int64_t>(value) : INT64_MIN;
    }
  }
}

void Array::set_real(int64_t i, double value) {
  switch (dtype) {
    case DType::kF16: return store(*this, i, half_from_double(value));
    case DType::kBF16: return store(*this, i, bfloat_from_double(value));
    case DType::kF32: return store(*this, i, static_cast<float>(value));
    case DType::kF64: return store(*this, i, value);
    case DType::kBool: return store(*this, i, static_cast<uint8_t>(value != 0));
    default: return set_integer(i, std::fabs(value) < 9.2e18 ? static_cast<int64_t>(value) : INT64_MIN);
  }
}

void Array::set_integer(int64_t i, int64_t value) {
  switch (dtype) {
    case DType::kBool: return store(*this, i, static_cast<uint8_t>(value != 0));
    case DType::kU8:
    case DType::kI8: return store(*this, i, static_cast<uint8_t>(value));
    case DType::kI16:
    case DType::kU16: return store(*this, i, static_cast<uint16_t>(value));
    case DType::kI32:
    case DType::kU32: return store(*this, i, static_cast<uint32_t>(value));
    case DType::kI64:
    case DType::kU64: return store(*this, i, value);
    default: return set_real(i, static_cast<double>(value));
  }
}

std::string Array::element_text(int64_t i) const {
  std::ostringstream out;
  out.precision(17);
  if (is_floating(dtype)) {
    out << real(i);
  } else {
    out << integer(i);
  }
  return out.str();
}

}  // namespace ltc::conformance
