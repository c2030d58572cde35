// Against sums in double.
#include "cpu_kernels/rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu_kernels/testing/each_set.h"

namespace ltc::cpu {
namespace {

constexpr int64_t kLengths[] = {1, 2, 15, 16, 17, 63, 64, 65, 1000, kPiece + 9};
constexpr int64_t kRows = 3;
constexpr double kWorst = 2e-6;

class RowsTest : public EachSet {
 protected:
  static double sum_of(const float* x, int64_t length) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += x[i];
    return sum;
  }
};
LTC_FOR_EACH_SET(RowsTest);

TEST_P(RowsTest, Sums) {
  for (const int64_t length : kLengths) {
    const Noise x = noise(kRows * length), out = noise(kRows);
    sum_rows(x.get(), kRows, length, 0.5, out.get());
    for (int64_t row = 0; row < kRows; ++row) {
      EXPECT_NEAR(out[row], 0.5 * sum_of(x.get() + row * length, length), kWorst * std::sqrt(length)) << length;
    }
  }
}

TEST_P(RowsTest, SumsOfColumns) {
  for (const int64_t rows : {1, 4, 7}) {
    const int64_t columns = 37, stride = 40;
    const Noise x = noise(rows * stride), sums = noise(columns), before = sums.copy();
    add_rows(sums.get(), x.get(), rows, columns, stride);
    for (int64_t i = 0; i < columns; ++i) {
      double sum = before[i];
      for (int64_t row = 0; row < rows; ++row) sum += x[row * stride + i];
      EXPECT_NEAR(sums[i], sum, kWorst);
    }
  }
}

TEST_P(RowsTest, LayerNorm) {
  for (const int64_t length : kLengths) {
    const Noise x = noise(kRows * length), weight = noise(length), bias = noise(length);
    const Noise out = noise(kRows * length), means = noise(kRows), scales = noise(kRows);
    layer_norm(x.get(), kRows, length, weight.get(), bias.get(), 1e-5, {out.get(), means.get(), scales.get()});
    for (int64_t row = 0; row < kRows; ++row) {
      const float* const from = x.get() + row * length;
      const double mean = sum_of(from, length) / static_cast<double>(length);
      double variance = 0;
      for (int64_t i = 0; i < length; ++i) variance += (from[i] - mean) * (from[i] - mean) / static_cast<double>(length);
      const double scale = 1 / std::sqrt(variance + 1e-5);
      EXPECT_NEAR(means[row], mean, kWorst);
      EXPECT_NEAR(scales[row] / scale, 1, kWorst);
      for (int64_t i = 0; i < length; ++i) {
        EXPECT_NEAR(out[row * length + i], (from[i] - mean) * scale * weight[i] + bias[i], 1e-5) << length;
      }
    }
  }
}

TEST_P(RowsTest, Softmax) {
  for (const int64_t length : kLengths) {
    const Noise x = noise(kRows * length), out = noise(kRows * length);
    x.get()[length - 1] = -std::numeric_limits<float>::infinity();
    if (length > 1) x.get()[0] = 200;  // exp(200) is no float
    softmax(x.get(), kRows, length, out.get());
    for (int64_t row = length == 1; row < kRows; ++row) {
      const float *const from = x.get() + row * length, most = *std::max_element(from, from + length);
      double sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += std::exp(double{from[i]} - most);
      for (int64_t i = 0; i < length; ++i) {
        EXPECT_NEAR(out[row * length + i], std::exp(double{from[i]} - most) / sum, kWorst) << length;
      }
    }
  }
}

TEST_P(RowsTest, NanShowsInItsRowAlone) {
  const int64_t length = 40;
  for (const int64_t at : {0, 20, 39}) {
    const Noise x = noise(kRows * length), out = noise(kRows * length);
    x.get()[length + at] = std::numeric_limits<float>::quiet_NaN();
    softmax(x.get(), kRows, length, out.get());
    for (int64_t i = 0; i < kRows * length; ++i) EXPECT_EQ(std::isnan(out[i]), i / length == 1) << i;
  }
}

TEST_P(RowsTest, Terms) {
  for (const bool relu : {false, true}) {
    for (const bool has_other : {false, true}) {
      const int64_t length = 21;
      const Noise x = noise(kRows * length), bias = noise(length), other = noise(kRows * length), before = x.copy();
      add_to_rows(x.get(), kRows, length, bias.get(), has_other ? other.get() : nullptr, relu);
      for (int64_t i = 0; i < x.size; ++i) {
        const float sum = before[i] + bias[i % length] + (has_other ? other[i] : 0);
        EXPECT_EQ(x[i], relu && sum < 0 ? 0 : sum);
      }
    }
  }
}

}  // namespace
}  // namespace ltc::cpu
