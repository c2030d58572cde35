#include "core/run/queue/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ltc {
namespace {

using ::testing::ElementsAre;

template <typename T>
HostValue value_of(DType dtype, const std::vector<T>& elements) {
  const int64_t sizes[] = {static_cast<int64_t>(elements.size())};
  HostValue value = allocate_host_value(intern_contiguous(dtype, sizes));
  std::memcpy(value.data.get(), elements.data(), elements.size() * sizeof(T));
  return value;
}

template <typename T>
std::vector<T> as(DType dtype, const HostValue& value) {
  const HostValue converted = convert(value, intern_contiguous(dtype, type_of(value.type).sizes));
  const auto* begin = static_cast<const T*>(converted.data.get());
  return {begin, begin + type_of(converted.type).element_count};
}

TEST(HostMemoryTest, IsUsedAgainByValuesThatFit) {
  const auto address = [](const HostValue& value) { return reinterpret_cast<uintptr_t>(value.data.get()); };
  const int64_t large[] = {3000}, small[] = {2049}, other[] = {2048}, none[] = {0}, huge[] = {1 << 20};
  HostValue first = allocate_host_value(intern_contiguous(DType::kF32, large));
  const uintptr_t was = address(first);
  HostValue second = allocate_host_value(intern_contiguous(DType::kF32, large));
  EXPECT_NE(address(second), was);
  first = {};
  EXPECT_NE(address(allocate_host_value(intern_contiguous(DType::kF32, other))), was);  // 8 KB exactly
  EXPECT_EQ(address(allocate_host_value(intern_contiguous(DType::kF32, small))), was);
  for (const auto& sizes : {large, small, other, none, huge}) {
    const HostValue value = allocate_host_value(intern_contiguous(DType::kF32, std::span(sizes, 1)));
    EXPECT_EQ(address(value) % 64, 0u);
    std::memset(value.data.get(), 1, type_of(value.type).size_bytes());
  }
}

TEST(Convert, EqualTypesShareTheBytes) {
  const HostValue value = value_of<float>(DType::kF32, {1, 2});
  EXPECT_EQ(convert(value, value.type).data, value.data);
}

TEST(Convert, BetweenDoubleAndSingle) {
  EXPECT_THAT(as<float>(DType::kF32, value_of<double>(DType::kF64, {0.1, 1e300, -2})), ElementsAre(0.1f, HUGE_VALF, -2.0f));
  EXPECT_THAT(as<double>(DType::kF64, value_of<float>(DType::kF32, {0.1f})), ElementsAre(double{0.1f}));
}

TEST(Convert, Bf16RoundsToNearestAndTiesToEven) {
  const float below = std::nextafter(1.01171875f, 0.0f), above = std::nextafter(1.00390625f, 2.0f);
  EXPECT_THAT(as<uint16_t>(DType::kBF16, value_of<float>(DType::kF32, {1, -2, 1.00390625f, above, 1.01171875f, below})),
              ElementsAre(0x3f80, 0xc000, 0x3f80, 0x3f81, 0x3f82, 0x3f81));
  EXPECT_THAT(as<uint16_t>(DType::kBF16, value_of<float>(DType::kF32, {INFINITY, -INFINITY, NAN, 3.4e38f, 0.0f, -0.0f})),
              ElementsAre(0x7f80, 0xff80, 0x7fc0, 0x7f80, 0x0000, 0x8000));
}

TEST(Convert, DoubleIsRoundedOnce) {
  const double tie = 1.00390625;  // between 0x3f80 and 0x3f81, and too close to it for a float to tell
  EXPECT_THAT(as<uint16_t>(DType::kBF16, value_of<double>(DType::kF64, {tie, tie + 1e-12, tie - 1e-12, -(tie + 1e-12), 1e300})),
              ElementsAre(0x3f80, 0x3f81, 0x3f80, 0xbf81, 0x7f80));
}

TEST(Convert, Bf16IsExactInTheOthers) {
  EXPECT_THAT(as<float>(DType::kF32, value_of<uint16_t>(DType::kBF16, {0x3f81, 0xff80})), ElementsAre(1.0078125f, -HUGE_VALF));
  EXPECT_THAT(as<double>(DType::kF64, value_of<uint16_t>(DType::kBF16, {0x3f81})), ElementsAre(1.0078125));
}

TEST(Convert, ComplexHasTwoParts) {
  const int64_t sizes[] = {1};
  HostValue value = allocate_host_value(intern_contiguous(DType::kC128, sizes));
  const double parts[] = {1.5, -2.5};
  std::memcpy(value.data.get(), parts, sizeof parts);
  const HostValue narrow = convert(value, intern_contiguous(DType::kC64, sizes));
  const auto* floats = static_cast<const float*>(narrow.data.get());
  EXPECT_EQ(floats[0], 1.5f);
  EXPECT_EQ(floats[1], -2.5f);
}

TEST(Convert, OtherPairsAreRefused) { EXPECT_THROW(as<int64_t>(DType::kI64, value_of<float>(DType::kF32, {1})), Error); }

}  // namespace
}  // namespace ltc
