// The points are 0, 1, -1 and infinity. Some tiles are transformed at once, so that their points stay in the L2 cache:
// of each point there is a matrix of tiles x channels.
#include "cpu_kernels/winograd.h"

#include "cpu_kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_kernels/winograd.cpp"
#include <hwy/foreach_target.h>

#include "cpu_kernels/product_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

static_assert(kChannelStep % kWidth == 0);

constexpr int64_t kTilesTogether = 48;  // transformed at once
constexpr int64_t kResults = 64;        // channels whose points are kept until they are transformed back
constexpr int64_t kLine = 16;           // elements: without it all matrices would begin at the same line of the cache

// To whole panels.
inline int64_t padded(int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

// ---- products

// to (+)= a b, row by row. The panels of b lie `panel_stride` apart.
void multiply(const LeftOperand& a, int64_t rows, int64_t depth, RightOperand b, int64_t panel_stride, int64_t columns, float* to,
              bool add) {
  for (int64_t column = 0; column < columns; column += kPanel, b.data += panel_stride) {
    multiply_panel(a, rows, depth, b, columns - column > kWidth, to + column, columns, add);
  }
}

// ---- transforms, of one vector of channels

// To 4 points from 4 elements, from 3 taps, from 2 gradients; and back to 2 results and to 3 taps.
struct OfElements {
  static constexpr int kFrom = 4, kTo = 4;
  static void apply(const Vec (&x)[kFrom], Vec (&to)[kTo]) {
    to[0] = x[0] - x[2], to[1] = x[1] + x[2], to[2] = x[2] - x[1], to[3] = x[1] - x[3];
  }
};
struct OfTaps {
  static constexpr int kFrom = 3, kTo = 4;
  static void apply(const Vec (&x)[kFrom], Vec (&to)[kTo]) {
    const Vec half(0.5f), ends = (x[0] + x[2]) * half, middle = x[1] * half;
    to[0] = x[0], to[1] = ends + middle, to[2] = ends - middle, to[3] = x[2];
  }
};
struct OfGradients {
  static constexpr int kFrom = 2, kTo = 4;
  static void apply(const Vec (&x)[kFrom], Vec (&to)[kTo]) {
    const Vec half(0.5f);
    to[0] = x[0], to[1] = (x[0] + x[1]) * half, to[2] = (x[0] - x[1]) * half, to[3] = x[1];
  }
};
struct ToResults {
  static constexpr int kFrom = 4, kTo = 2;
  static void apply(const Vec (&x)[kFrom], Vec (&to)[kTo]) { to[0] = x[0] + x[1] + x[2], to[1] = x[1] - x[2] - x[3]; }
};
struct ToTaps {
  static constexpr int kFrom = 4, kTo = 3;
  static void apply(const Vec (&x)[kFrom], Vec (&to)[kTo]) {
    const Vec sum = x[1] + x[2];
    to[0] = x[0] + sum, to[1] = x[1] - x[2], to[2] = sum - x[3];
  }
};

// Both ways, down and across: store(y, x, value) of load(y, x).
template <typename Transform, typename Load, typename Store>
inline __attribute__((always_inline)) void transform(Load load, Store store) {
  Vec down[Transform::kTo][Transform::kFrom];
#pragma GCC unroll 4
  for (int x = 0; x < Transform::kFrom; ++x) {
    Vec column[Transform::kFrom], turned[Transform::kTo];
#pragma GCC unroll 4
    for (int y = 0; y < Transform::kFrom; ++y) column[y] = load(y, x);
    Transform::apply(column, turned);
#pragma GCC unroll 4
    for (int y = 0; y < Transform::kTo; ++y) down[y][x] = turned[y];
  }
#pragma GCC unroll 4
  for (int y = 0; y < Transform::kTo; ++y) {
    Vec across[Transform::kTo];
    Transform::apply(down[y], across);
#pragma GCC unroll 4
    for (int x = 0; x < Transform::kTo; ++x) store(y, x, across[x]);
  }
}

// ---- tiles of images

// Where a tile's elements are; null outside of the image.
template <typename Element, int kSide>
struct Window {
  Element* at[kSide][kSide];
};

struct Grid {
  int64_t rows, columns;  // tiles of an image

  // Calls visit(i, image, row, column) for the tiles first + i.
  template <typename Visit>
  void walk(int64_t first, int64_t count, Visit visit) const {
    int64_t image = first / (rows * columns), row = first / columns % rows, column = first % columns;
    for (int64_t i = 0; i < count; ++i) {
      visit(i, image, row, column);
      if (++column < columns) continue;
      column = 0;
      if (++row < rows) continue;
      row = 0, ++image;
    }
  }
};

template <int kSide, typename Element>
inline Window<Element, kSide> window_at(const ImageView<Element>& images, int64_t image, int64_t row, int64_t column) {
  Window<Element, kSide> window;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const bool inside = row + y >= 0 && row + y < images.rows && column + x >= 0 && column + x < images.columns;
      window.at[y][x] = inside ? images.pixel(image, row + y, column + x) : nullptr;
    }
  }
  return window;
}

// The points of channels first .. first + count of a window, `plane` elements apart.
template <typename Transform, int kSide>
void transform_window(const Images& images, int64_t image, int64_t row, int64_t column, int64_t first, int64_t count, float* to,
                      int64_t plane) {
  const bool inside = row >= 0 && column >= 0 && row + kSide <= images.rows && column + kSide <= images.columns;
  const auto store = [&](int y, int x, const Vec& value) { value.store(to + (4 * y + x) * plane); };
  if (inside) {
    const float* from = images.pixel(image, row, column) + first;
    const int64_t row_stride = images.columns * images.channels, column_stride = images.channels;
    for (int64_t i = 0; i < count; i += kWidth, from += kWidth, to += kWidth) {
      transform<Transform>([&](int y, int x) { return Vec::load(from + y * row_stride + x * column_stride); }, store);
    }
    return;
  }
  const auto window = window_at<kSide>(images, image, row, column);
  for (int64_t i = first; i < first + count; i += kWidth, to += kWidth) {
    transform<Transform>([&](int y, int x) { return window.at[y][x] ? Vec::load(window.at[y][x] + i) : Vec(0.f); }, store);
  }
}

// ---- taps

void transform_taps(const Taps& taps, int64_t rows, int64_t columns, float* points) {
  for (int64_t column = 0; column < columns; column += kWidth) {
    const int64_t panel = column / kPanel * kPanel;
    for (int64_t row = 0; row < rows; ++row) {
      const float* const from = taps.data + row * taps.row_stride + column * taps.column_stride;
      float lanes[3][3][kWidth];
      for (int64_t lane = 0; lane < kWidth; ++lane) {
        for (int y = 0; y < 3; ++y) {
          for (int x = 0; x < 3; ++x) lanes[y][x][lane] = from[lane * taps.column_stride + y * taps.y_stride + x * taps.x_stride];
        }
      }
      float* const to = points + panel * rows + row * kPanel + column - panel;
      transform<OfTaps>([&](int y, int x) { return Vec::load(lanes[y][x]); },
                        [&](int y, int x, const Vec& value) { value.store(to + (4 * y + x) * rows * padded(columns)); });
    }
  }
}

// ---- results

int64_t plane_of(int64_t rows, int64_t columns) { return rows * columns + kLine; }

int64_t convolve_scratch(const WinogradConvolution& convolution) {
  return kPoints * (plane_of(kTilesTogether, convolution.from.channels) + plane_of(kTilesTogether, kResults));
}

// A tile's results of the channels first .. first + count, from their points.
void transform_back(const WinogradConvolution& convolution, int64_t image, int64_t row, int64_t column, int64_t first,
                    int64_t count, const float* points, int64_t plane) {
  const auto window = window_at<2>(convolution.to, image, row, column);
  for (int64_t i = first; i < first + count; i += kWidth, points += kWidth) {
    const Vec bias = convolution.bias ? Vec::load(convolution.bias + i) : Vec(0.f);
    transform<ToResults>([&](int y, int x) { return Vec::load(points + (4 * y + x) * plane); },
                         [&](int y, int x, const Vec& value) {
                           if (window.at[y][x]) (value + bias).store(window.at[y][x] + i);
                         });
  }
}

void convolve(const WinogradConvolution& convolution, int64_t first_tile, int64_t last_tile, float* scratch) {
  const Grid grid{tiles_of(convolution.to.rows), tiles_of(convolution.to.columns)};
  const int64_t channels = convolution.from.channels, results = convolution.to.channels;
  const int64_t from_plane = plane_of(kTilesTogether, channels), to_plane = plane_of(kTilesTogether, kResults);
  float* const sums = scratch + kPoints * from_plane;
  for (int64_t tile = first_tile; tile < last_tile; tile += kTilesTogether) {
    const int64_t count = least(kTilesTogether, last_tile - tile);
    grid.walk(tile, count, [&](int64_t i, int64_t image, int64_t row, int64_t column) {
      transform_window<OfElements, 4>(convolution.from, image, 2 * row - convolution.row_padding,
                                      2 * column - convolution.column_padding, 0, channels, scratch + i * channels, from_plane);
    });
    for (int64_t first = 0; first < results; first += kResults) {
      const int64_t width = least(kResults, results - first);
      for (int64_t point = 0; point < kPoints; ++point) {
        multiply({scratch + point * from_plane, channels, 1}, count, channels,
                 {convolution.points + channels * (point * padded(results) + first), kPanel}, channels * kPanel, width,
                 sums + point * to_plane, false);
      }
      grid.walk(tile, count, [&](int64_t i, int64_t image, int64_t row, int64_t column) {
        transform_back(convolution, image, 2 * row, 2 * column, first, width, sums + i * width, to_plane);
      });
    }
  }
}

// ---- gradients of taps

struct TapsPlanes {
  int64_t channels, results;
  int64_t elements = plane_of(kTilesTogether, channels), gradients = plane_of(kTilesTogether, results),
          sums = plane_of(results, channels);
};

TapsPlanes planes_of(const WinogradGradient& gradient) {
  return {gradient.last_channel - gradient.first_channel, gradient.last_result - gradient.first_result};
}

int64_t taps_scratch(const WinogradGradient& gradient) {
  const TapsPlanes planes = planes_of(gradient);
  return kPoints * (planes.elements + planes.gradients + planes.sums);
}

// The second diagonal point of a tile of gradients is a quarter of their sum.
void add_up_results(const float* points, int64_t tiles, int64_t results, float* sums) {
  for (int64_t i = 0; i < results; i += kWidth) {
    Vec sum(0.f);
    for (int64_t tile = 0; tile < tiles; ++tile) sum = sum + Vec::load(points + tile * results + i);
    (Vec::load(sums + i) + Vec(4.f) * sum).store(sums + i);
  }
}

void store_taps(const WinogradGradient& gradient, const float* sums, const TapsPlanes& planes) {
  const WritableTaps& taps = gradient.taps;
  for (int64_t result = 0; result < planes.results; ++result) {
    for (int64_t channel = 0; channel < planes.channels; channel += kWidth) {
      const float* const from = sums + result * planes.channels + channel;
      float* const to = taps.data + (gradient.first_result + result) * taps.row_stride +
                        (gradient.first_channel + channel) * taps.column_stride;
      transform<ToTaps>([&](int y, int x) { return Vec::load(from + (4 * y + x) * planes.sums); },
                        [&](int y, int x, const Vec& value) {
                          float lanes[kWidth];
                          value.store(lanes);
                          float* const tap = to + y * taps.y_stride + x * taps.x_stride;
                          for (int64_t lane = 0; lane < kWidth; ++lane) tap[lane * taps.column_stride] = lanes[lane];
                        });
    }
  }
}

void add_up_taps(const WinogradGradient& gradient, float* scratch) {
  const Images &from = gradient.from, &of = gradient.gradient;
  const Grid grid{tiles_of(of.rows), tiles_of(of.columns)};
  const TapsPlanes planes = planes_of(gradient);
  float* const elements = scratch;
  float* const gradients = elements + kPoints * planes.elements;
  float* const sums = gradients + kPoints * planes.gradients;
  const int64_t tiles = gradient.images * grid.rows * grid.columns;
  for (int64_t tile = 0; tile < tiles; tile += kTilesTogether) {
    const int64_t count = least(kTilesTogether, tiles - tile);
    grid.walk(tile, count, [&](int64_t i, int64_t image, int64_t row, int64_t column) {
      transform_window<OfElements, 4>(from, image, 2 * row - gradient.row_padding, 2 * column - gradient.column_padding,
                                      gradient.first_channel, planes.channels, elements + i * planes.channels, planes.elements);
      transform_window<OfGradients, 2>(of, image, 2 * row, 2 * column, gradient.first_result, planes.results,
                                       gradients + i * planes.results, planes.gradients);
    });
    for (int64_t point = 0; point < kPoints; ++point) {
      multiply({gradients + point * planes.gradients, 1, planes.results}, planes.results, count,
               {elements + point * planes.elements, planes.channels}, kPanel, planes.channels, sums + point * planes.sums,
               tile > 0);
    }
    if (gradient.sums) {
      add_up_results(gradients + 5 * planes.gradients, count, planes.results, gradient.sums + gradient.first_result);
    }
  }
  store_taps(gradient, sums, planes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ltc::cpu {

void winograd_transform_taps(const Taps& taps, int64_t rows, int64_t columns, float* points) {
  LTC_CHOSEN(transform_taps)(taps, rows, columns, points);
}
void winograd_convolve(const WinogradConvolution& convolution, int64_t first_tile, int64_t last_tile, float* scratch) {
  LTC_CHOSEN(convolve)(convolution, first_tile, last_tile, scratch);
}
void winograd_add_up_taps(const WinogradGradient& gradient, float* scratch) { LTC_CHOSEN(add_up_taps)(gradient, scratch); }
int64_t winograd_scratch(const WinogradConvolution& convolution) { return LTC_CHOSEN(convolve_scratch)(convolution); }
int64_t winograd_taps_scratch(const WinogradGradient& gradient) { return LTC_CHOSEN(taps_scratch)(gradient); }

}  // namespace ltc::cpu
#endif
