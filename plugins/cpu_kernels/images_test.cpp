#include "cpu_kernels/images.h"

#include <cmath>
#include <limits>
#include <vector>

#include "cpu_kernels/testing/each_set.h"

namespace ltc::cpu {
namespace {

class ImagesTest : public EachSet {
 protected:
  struct Best {
    float value = -std::numeric_limits<float>::infinity();
    int64_t index = -1;
  };

  static Window window(int64_t in, int64_t size, int64_t stride, int64_t padding, int64_t dilation) {
    return {size, stride, padding, dilation, in, (in + 2 * padding - dilation * (size - 1) - 1) / stride + 1};
  }

  // The maximum for the result in that row and column of a channel. The last NaN wins, else the first of equal elements.
  template <typename Element>
  static Best best_of(const Pooling& pooling, int64_t row, int64_t column, Element element) {
    Best best;
    for (int64_t y = 0; y < pooling.rows.size; ++y) {
      for (int64_t x = 0; x < pooling.columns.size; ++x) {
        const int64_t from_row = row * pooling.rows.stride - pooling.rows.padding + y * pooling.rows.dilation;
        const int64_t from_column = column * pooling.columns.stride - pooling.columns.padding + x * pooling.columns.dilation;
        if (from_row < 0 || from_row >= pooling.rows.in || from_column < 0 || from_column >= pooling.columns.in) continue;
        float value = element(from_row, from_column);
        if (pooling.relu && value < 0) value = 0;
        if (best.index < 0 || value > best.value || std::isnan(value)) {
          best = {value, from_row * pooling.columns.in + from_column};
        }
      }
    }
    return best;
  }

  void check(const Pooling& pooling) {
    const int64_t channels = pooling.channels, pixels = pooling.rows.in * pooling.columns.in;
    const Noise image = noise(pixels * channels), by_channels = noise(pixels * channels);
    image.get()[pixels / 2] = std::numeric_limits<float>::quiet_NaN();
    transpose(image.get(), channels, pixels, pixels, by_channels.get());
    const int64_t width = pooling.columns.out;
    std::vector<float> best(static_cast<size_t>(width * channels));
    std::vector<int64_t> indices(best.size());
    const auto expect = [&](int64_t channel, int64_t row, int64_t column, size_t at) {
      const Best wanted = best_of(pooling, row, column,
                                  [&](int64_t y, int64_t x) { return image[channel * pixels + y * pooling.columns.in + x]; });
      EXPECT_TRUE(best[at] == wanted.value || (std::isnan(best[at]) && std::isnan(wanted.value)));
      EXPECT_EQ(indices[at], wanted.index);
    };
    for (int64_t row = 0; row < pooling.rows.out; ++row) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        pool_row(pooling, image.get() + channel * pixels, row, best.data(), indices.data());
        for (int64_t column = 0; column < width; ++column) expect(channel, row, column, static_cast<size_t>(column));
      }
      pool_pixels(pooling, by_channels.get(), row, best.data(), indices.data());
      for (int64_t i = 0; i < width * channels; ++i) expect(i % channels, row, i / channels, static_cast<size_t>(i));
    }
  }
};
LTC_FOR_EACH_SET(ImagesTest);

TEST_P(ImagesTest, MaxPools) {
  for (const int64_t channels : {1, 20, 300}) {
    for (const bool relu : {false, true}) {
      for (const int64_t stride : {1, 2, 3}) {
        check({window(9, 2, stride, 0, 1), window(13, 3, stride, 1, 1), channels, relu});
        check({window(9, 3, stride, 1, 2), window(21, 2, stride, 1, 1), channels, relu});
      }
    }
  }
}

TEST_P(ImagesTest, TransposedMatrices) {
  for (const int64_t rows : {1, 3, 8, 17}) {
    for (const int64_t columns : {1, 5, 8, 16, 33}) {
      const int64_t stride = columns + 3;
      const Noise from = noise(rows * stride), to = noise(rows * columns);
      transpose(from.get(), rows, columns, stride, to.get());
      for (int64_t i = 0; i < to.size; ++i) EXPECT_EQ(to[i], from[i % rows * stride + i / rows]);
    }
  }
}

}  // namespace
}  // namespace ltc::cpu
