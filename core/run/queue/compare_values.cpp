#include "core/run/queue/compare_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

double half(uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// The numbers of a value: two of each complex element.
class Numbers {
 public:
  explicit Numbers(const HostValue& value)
      : dtype_(type_of(value.type).dtype),
        parts_(is_complex(dtype_) ? 2 : 1),
        bytes_(static_cast<const std::byte*>(value.data.get())) {
    count_ = type_of(value.type).element_count * parts_;
    size_ = dtype_size_bytes(dtype_) / static_cast<size_t>(parts_);
  }
  bool are_known() const { return !is_f8(dtype_) && dtype_ != DType::kC32; }
  int64_t count() const { return count_; }
  int64_t parts() const { return parts_; }
  const std::byte* bytes(int64_t i) const { return bytes_ + static_cast<size_t>(i) * size_; }
  size_t size() const { return size_; }

  double operator[](int64_t i) const {
    const std::byte* from = bytes(i);
    switch (dtype_) {
      case DType::kBool:
      case DType::kU8: return load<uint8_t>(from);
      case DType::kI8: return load<int8_t>(from);
      case DType::kI16: return load<int16_t>(from);
      case DType::kU16: return load<uint16_t>(from);
      case DType::kI32: return load<int32_t>(from);
      case DType::kU32: return load<uint32_t>(from);
      case DType::kI64: return static_cast<double>(load<int64_t>(from));
      case DType::kU64: return static_cast<double>(load<uint64_t>(from));
      case DType::kF16: return half(load<uint16_t>(from));
      case DType::kBF16: return std::bit_cast<float>(static_cast<uint32_t>(load<uint16_t>(from)) << 16);
      case DType::kF32:
      case DType::kC64: return load<float>(from);
      case DType::kF64:
      case DType::kC128: return load<double>(from);
      default: return *reinterpret_cast<const uint8_t*>(from);
    }
  }

 private:
  const DType dtype_;
  const int64_t parts_;
  const std::byte* bytes_;
  int64_t count_;
  size_t size_;
};

bool is_near(double got, double expected, double tolerance, double scale) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (std::isinf(got) || std::isinf(expected)) return got == expected;
  return std::abs(got - expected) <= tolerance * std::max(std::abs(expected), scale);
}

// How far two numbers that are not near are apart; NaN and infinities are farthest.
double distance(double got, double expected) {
  const double apart = std::abs(got - expected);
  return std::isfinite(apart) ? apart : std::numeric_limits<double>::infinity();
}

}  // namespace

std::optional<Difference> compare_values(const HostValue& got, const HostValue& expected, double tolerance, double scale) {
  const Numbers ours(got), theirs(expected);
  const DType dtype = type_of(expected.type).dtype;
  const bool is_exact = !theirs.are_known() || !(is_floating(dtype) || is_complex(dtype));
  Difference found{.elements = theirs.count() / theirs.parts()};
  double farthest = -1;
  for (int64_t i = 0; i < theirs.count(); ++i) {
    const bool equal = is_exact ? std::memcmp(ours.bytes(i), theirs.bytes(i), theirs.size()) == 0
                                : is_near(ours[i], theirs[i], tolerance, scale);
    if (equal) continue;
    ++found.count;
    if (const double apart = distance(ours[i], theirs[i]); apart > farthest) {
      farthest = apart;
      found.at = i / theirs.parts(), found.got = ours[i], found.expected = theirs[i];
    }
  }
  return found.count ? std::optional(found) : std::nullopt;
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kC128: return 1e-9;
    case DType::kF32:
    case DType::kC64: return 1e-4;
    case DType::kF16: return 1e-2;
    case DType::kBF16: return 6e-2;
    default: return 0;
  }
}

double magnitude_of(const HostValue& value) {
  const Numbers numbers(value);
  const DType dtype = type_of(value.type).dtype;
  double largest = 0;
  if (!is_floating(dtype) && !is_complex(dtype)) return largest;
  for (int64_t i = 0; i < numbers.count(); ++i) {
    if (std::isfinite(numbers[i])) largest = std::max(largest, std::abs(numbers[i]));
  }
  return largest;
}

bool has_nan(const HostValue& value) {
  const Numbers numbers(value);
  for (int64_t i = 0; i < numbers.count(); ++i) {
    if (std::isnan(numbers[i])) return true;
  }
  return false;
}

std::string stats_text(const HostValue& value) {
  const Numbers numbers(value);
  double least = std::numeric_limits<double>::infinity(), largest = -least, sum = 0;
  int64_t nans = 0, finite = 0;
  for (int64_t i = 0; i < numbers.count(); ++i) {
    const double number = numbers[i];
    nans += std::isnan(number);
    if (std::isnan(number)) continue;
    least = std::min(least, number), largest = std::max(largest, number);
    if (std::isfinite(number)) sum += number, ++finite;
  }
  std::string text = type_text(value.type);
  if (finite > 0) text += cat(" from ", least, " to ", largest, ", mean ", sum / static_cast<double>(finite));
  return nans ? cat(text, ", ", nans, " NaN") : text;
}

std::string difference_text(const Difference& difference, TypeId type) {
  const std::vector<int64_t>& sizes = type_of(type).sizes;
  std::string index;
  int64_t rest = difference.at;
  for (size_t dim = sizes.size(); dim-- > 0; rest /= sizes[dim]) index = cat(rest % sizes[dim], index.empty() ? "" : ",", index);
  return cat(difference.count, " of ", difference.elements, " elements differ, most at [", index, "]: ", difference.got,
             " instead of ", difference.expected);
}

}  // namespace ltc
