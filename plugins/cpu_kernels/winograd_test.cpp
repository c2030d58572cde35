// Against sums in double, in memory of exactly the sizes: a sanitizer's build sees what reads or writes beyond.
#include "cpu_kernels/winograd.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu_kernels/testing/each_set.h"

namespace ltc::cpu {
namespace {

constexpr double kWorst = 2e-6;  // of a result, per square root of the terms that it sums; they are about 1

struct Shape {
  int64_t images, channels, results, rows, columns, row_padding, column_padding;
  int64_t out_rows() const { return rows + 2 * row_padding - 2; }
  int64_t out_columns() const { return columns + 2 * column_padding - 2; }
};

// Even and odd sides, of a tile or less, one and several blocks of tiles and of channels, all paddings.
constexpr Shape kShapes[] = {
    {1, 16, 16, 3, 3, 0, 0},    {1, 16, 16, 1, 1, 1, 1},  {2, 16, 48, 4, 4, 0, 0},
    {2, 48, 16, 5, 7, 1, 2},    {3, 32, 64, 9, 8, 2, 0},  {1, 80, 32, 11, 9, 1, 1},
    {2, 16, 144, 14, 15, 1, 1}, {1, 144, 80, 8, 6, 0, 1}, {1, 32, 32, 26, 26, 0, 0},
};

class WinogradTest : public EachSet {
 protected:
  // Weights of sides of 3, by results.
  static int64_t tap(const Shape& shape, int64_t result, int64_t channel, int64_t y, int64_t x) {
    return ((result * shape.channels + channel) * 3 + y) * 3 + x;
  }

  // Calls visit(index of an element, of a weight, of a result) for each multiplication.
  template <typename Visit>
  static void multiplications(const Shape& shape, int64_t result, int64_t channel, Visit visit) {
    for (int64_t image = 0; image < shape.images; ++image) {
      for (int64_t row = 0; row < shape.out_rows(); ++row) {
        for (int64_t column = 0; column < shape.out_columns(); ++column) {
          for (int64_t y = 0; y < 3; ++y) {
            for (int64_t x = 0; x < 3; ++x) {
              const int64_t from_row = row + y - shape.row_padding, from_column = column + x - shape.column_padding;
              if (from_row < 0 || from_row >= shape.rows || from_column < 0 || from_column >= shape.columns) continue;
              visit(((image * shape.rows + from_row) * shape.columns + from_column) * shape.channels + channel,
                    tap(shape, result, channel, y, x),
                    ((image * shape.out_rows() + row) * shape.out_columns() + column) * shape.results + result);
            }
          }
        }
      }
    }
  }

  template <typename Visit>
  static void all_multiplications(const Shape& shape, Visit visit) {
    for (int64_t result = 0; result < shape.results; ++result) {
      for (int64_t channel = 0; channel < shape.channels; ++channel) multiplications(shape, result, channel, visit);
    }
  }

  static void expect_near(const Noise& made, const std::vector<double>& expected, int64_t terms, const Shape& shape) {
    double worst = 0;
    for (int64_t i = 0; i < made.size; ++i) {
      const double error = std::abs(made.data[i] - expected[static_cast<size_t>(i)]);
      worst = error <= worst ? worst : error;  // NaN is the worst
    }
    EXPECT_LT(worst, kWorst * std::sqrt(terms))
        << shape.images << " images " << shape.rows << " x " << shape.columns << ", " << shape.channels << " to " << shape.results
        << ", padding " << shape.row_padding << ", " << shape.column_padding;
  }

  static int64_t image_size(const Shape& shape) { return shape.images * shape.rows * shape.columns * shape.channels; }
  static int64_t result_size(const Shape& shape) { return shape.images * shape.out_rows() * shape.out_columns() * shape.results; }

  // In two parts of the tiles.
  static void convolve(const WinogradConvolution& convolution, int64_t images) {
    const int64_t tiles = images * tiles_of(convolution.to.rows) * tiles_of(convolution.to.columns), middle = tiles / 3;
    const Noise scratch(winograd_scratch(convolution));
    winograd_convolve(convolution, 0, middle, scratch.data.get());
    winograd_convolve(convolution, middle, tiles, scratch.data.get());
  }
};
LTC_FOR_EACH_SET(WinogradTest);

TEST_P(WinogradTest, Results) {
  for (const Shape& shape : kShapes) {
    const Noise image = noise(image_size(shape)), weight = noise(shape.results * shape.channels * 9), bias = noise(shape.results);
    const Noise out = noise(result_size(shape)), points(points_size(shape.channels, shape.results));
    std::vector<double> expected(static_cast<size_t>(out.size));
    for (int64_t i = 0; i < out.size; ++i) expected[static_cast<size_t>(i)] = bias.data[i % shape.results];
    all_multiplications(shape, [&](int64_t from, int64_t tap, int64_t to) {
      expected[static_cast<size_t>(to)] += double{image.data[from]} * weight.data[tap];
    });
    winograd_transform_taps({weight.data.get(), 9, shape.channels * 9, 3, 1}, shape.channels, shape.results, points.data.get());
    convolve({{image.data.get(), shape.rows, shape.columns, shape.channels},
              {out.data.get(), shape.out_rows(), shape.out_columns(), shape.results},
              shape.row_padding,
              shape.column_padding,
              points.data.get(),
              bias.data.get()},
             shape.images);
    expect_near(out, expected, shape.channels * 9, shape);
  }
}

// Back to the image: a convolution of the gradient with the taps turned around.
TEST_P(WinogradTest, GradientsOfImages) {
  for (const Shape& shape : kShapes) {
    const Noise gradient = noise(result_size(shape)), weight = noise(shape.results * shape.channels * 9);
    const Noise out = noise(image_size(shape)), points(points_size(shape.results, shape.channels));
    std::vector<double> expected(static_cast<size_t>(out.size));
    all_multiplications(shape, [&](int64_t from, int64_t tap, int64_t to) {
      expected[static_cast<size_t>(from)] += double{gradient.data[to]} * weight.data[tap];
    });
    winograd_transform_taps({weight.data.get() + 8, shape.channels * 9, 9, -3, -1}, shape.results, shape.channels,
                            points.data.get());
    convolve({{gradient.data.get(), shape.out_rows(), shape.out_columns(), shape.results},
              {out.data.get(), shape.rows, shape.columns, shape.channels},
              2 - shape.row_padding,
              2 - shape.column_padding,
              points.data.get(),
              nullptr},
             shape.images);
    expect_near(out, expected, shape.results * 9, shape);
  }
}

// In parts of the results and of the channels, the sums of the gradients with the first of these.
TEST_P(WinogradTest, GradientsOfWeights) {
  for (const Shape& shape : kShapes) {
    const Noise image = noise(image_size(shape)), gradient = noise(result_size(shape));
    const Noise out = noise(shape.results * shape.channels * 9), sums(shape.results);
    std::vector<double> expected(static_cast<size_t>(out.size)), expected_sums(static_cast<size_t>(shape.results));
    all_multiplications(shape, [&](int64_t from, int64_t tap, int64_t to) {
      expected[static_cast<size_t>(tap)] += double{image.data[from]} * gradient.data[to];
    });
    for (int64_t i = 0; i < gradient.size; ++i) expected_sums[static_cast<size_t>(i % shape.results)] += gradient.data[i];
    std::fill_n(sums.data.get(), sums.size, 0.f);
    constexpr int64_t kPart = 2 * kChannelStep;
    for (int64_t result = 0; result < shape.results; result += kPart) {
      for (int64_t channel = 0; channel < shape.channels; channel += kPart) {
        const WinogradGradient part{.from = {image.data.get(), shape.rows, shape.columns, shape.channels},
                                    .gradient = {gradient.data.get(), shape.out_rows(), shape.out_columns(), shape.results},
                                    .images = shape.images,
                                    .row_padding = shape.row_padding,
                                    .column_padding = shape.column_padding,
                                    .first_channel = channel,
                                    .last_channel = std::min(channel + kPart, shape.channels),
                                    .first_result = result,
                                    .last_result = std::min(result + kPart, shape.results),
                                    .taps = {out.data.get(), shape.channels * 9, 9, 3, 1},
                                    .sums = channel == 0 ? sums.data.get() : nullptr};
        const Noise scratch(winograd_taps_scratch(part));
        winograd_add_up_taps(part, scratch.data.get());
      }
    }
    const int64_t terms = shape.images * shape.out_rows() * shape.out_columns();
    expect_near(out, expected, terms, shape);
    expect_near(sums, expected_sums, terms, shape);
  }
}

}  // namespace
}  // namespace ltc::cpu
