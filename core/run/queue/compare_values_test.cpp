#include "core/run/queue/compare_values.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

template <typename T>
HostValue value_of(DType dtype, std::vector<T> elements, std::vector<int64_t> sizes = {}) {
  if (sizes.empty()) sizes = {static_cast<int64_t>(elements.size())};
  HostValue value = allocate_host_value(intern_contiguous(dtype, sizes));
  if (!elements.empty()) std::memcpy(value.data.get(), elements.data(), elements.size() * sizeof(T));
  return value;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

HostValue floats(std::vector<float> elements) { return value_of(DType::kF32, std::move(elements)); }

TEST(CompareValues, FloatsMayDifferByTheToleranceOfTheLargerOfElementAndScale) {
  EXPECT_FALSE(compare_values(floats({1, 100}), floats({1.00005f, 100.005f}), 1e-4, 0));
  EXPECT_TRUE(compare_values(floats({1.001f}), floats({1}), 1e-4, 0));
  EXPECT_FALSE(compare_values(floats({1.001f}), floats({1}), 1e-4, 100));
}

TEST(CompareValues, TheLargestDifferenceIsTold) {
  const auto found = compare_values(floats({1, 2, 3, 4}), floats({1, 2.5, 0, 4}), 1e-4, 0);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, 2);
  EXPECT_EQ(found->elements, 4);
  EXPECT_EQ(found->at, 2);
  EXPECT_EQ(found->got, 3);
  EXPECT_EQ(found->expected, 0);
  EXPECT_EQ(difference_text(*found, intern_contiguous(DType::kF32, std::vector<int64_t>{2, 2})),
            "2 of 4 elements differ, most at [1,0]: 3 instead of 0");
}

TEST(CompareValues, NanAndInfinityEqualThemselvesOnly) {
  EXPECT_FALSE(compare_values(floats({kNan, kInf, -kInf}), floats({kNan, kInf, -kInf}), 1e-4, 1));
  EXPECT_TRUE(compare_values(floats({1}), floats({kNan}), 1e-4, 1));
  EXPECT_TRUE(compare_values(floats({kNan}), floats({1}), 1e-4, 1));
  EXPECT_TRUE(compare_values(floats({kInf}), floats({-kInf}), 1e-4, 1));
  EXPECT_TRUE(compare_values(floats({3e38f}), floats({kInf}), 1e-4, 1));
}

TEST(CompareValues, IntegersAndBytesAreEqual) {
  const int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_FALSE(compare_values(value_of<int64_t>(DType::kI64, {large}), value_of<int64_t>(DType::kI64, {large}), 1, 1));
  EXPECT_TRUE(compare_values(value_of<int64_t>(DType::kI64, {large}), value_of<int64_t>(DType::kI64, {large - 1}), 1, 1))
      << "a double would not tell them apart";
  EXPECT_TRUE(compare_values(value_of<uint8_t>(DType::kF8E5M2, {3}), value_of<uint8_t>(DType::kF8E5M2, {4}), 1, 1));
}

TEST(CompareValues, HalvesAndComplexNumbersAreRead) {
  const auto half = value_of<uint16_t>(DType::kF16, {0x3c00, 0x0001, 0xfc00, 0x7e00});  // 1, 2^-24, -inf, NaN
  EXPECT_EQ(magnitude_of(half), 1);
  EXPECT_TRUE(has_nan(half));
  EXPECT_EQ(magnitude_of(value_of<uint16_t>(DType::kBF16, {0xc040})), 3);
  const auto found =
      compare_values(value_of<float>(DType::kC64, {1, 2, 3, 4}, {2}), value_of<float>(DType::kC64, {1, 2, 3, 5}, {2}), 1e-4, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->at, 1);
  EXPECT_EQ(found->elements, 2);
}

TEST(CompareValues, AValueInAFewWords) {
  EXPECT_EQ(stats_text(floats({1, kNan, 3, -1})), "f32[4] from -1 to 3, mean 1, 1 NaN");
  EXPECT_EQ(stats_text(floats({})), "f32[0]");
  EXPECT_EQ(magnitude_of(floats({-2, kInf, 1})), 2);
  EXPECT_EQ(magnitude_of(value_of<int64_t>(DType::kI64, {7})), 0) << "of no float";
}

}  // namespace
}  // namespace ltc
