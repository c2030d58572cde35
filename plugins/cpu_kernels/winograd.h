// Convolutions of 3 x 3 taps at stride 1 by Winograd's minimal filtering F(2x2, 3x3), and their gradients by F(3x3, 2x2): 16
// multiplications for what takes 36 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). Images are cut
// into tiles of 4 x 4 elements that overlap by 2; a transformed tile is 16 points, and for each point there is a product of
// matrices over the channels. Any thread.
//
// Images are F32 and lie channels-last; channels are multiples of kChannelStep.
#pragma once
#include <cstdint>

namespace ltc::cpu {

inline constexpr int64_t kChannelStep = 16;  // a vector of the widest instruction set
inline constexpr int64_t kPoints = 16;       // of a transformed tile

// In elements.
template <typename Element>
struct ImageView {
  Element* data;
  int64_t rows, columns, channels;
  Element* pixel(int64_t image, int64_t row, int64_t column) const {
    return data + ((image * rows + row) * columns + column) * channels;
  }
};
using Images = ImageView<const float>;
using WritableImages = ImageView<float>;

// The weights of a convolution as a matrix of channels x channels for each of the 3 x 3 taps; strides may be negative.
template <typename Element>
struct TapsView {
  Element* data;
  int64_t row_stride, column_stride, y_stride, x_stride;
};
using Taps = TapsView<const float>;
using WritableTaps = TapsView<float>;

// to = from * taps + bias. An image's first tile begins `padding` elements before it.
struct WinogradConvolution {
  Images from;
  WritableImages to;
  int64_t row_padding, column_padding;
  const float* points;  // of the taps, by transform_taps
  const float* bias;    // of each result; may be null
};

// The gradient of the taps, for the results first .. last of the channels first_channel .. last_channel, over all images; and,
// unless null, the sum of the gradient of each result.
struct WinogradGradient {
  Images from, gradient;
  int64_t images, row_padding, column_padding;
  int64_t first_channel, last_channel, first_result, last_result;
  WritableTaps taps;  // rows are results, columns channels
  float* sums;
};

// To points_size(rows, columns) elements. Rows are what is summed.
void winograd_transform_taps(const Taps& taps, int64_t rows, int64_t columns, float* points);

// Tiles are counted through all images.
void winograd_convolve(const WinogradConvolution& convolution, int64_t first_tile, int64_t last_tile, float* scratch);
void winograd_add_up_taps(const WinogradGradient& gradient, float* scratch);

// Elements of the scratch memory, which begins at a cache line.
int64_t winograd_scratch(const WinogradConvolution& convolution);
int64_t winograd_taps_scratch(const WinogradGradient& gradient);

// The number of tiles along a side of `results` elements.
inline int64_t tiles_of(int64_t results) { return (results + 1) / 2; }

// The columns of the points of taps are filled up to whole panels of two vectors.
inline int64_t points_size(int64_t rows, int64_t columns) {
  constexpr int64_t kWidest = 2 * kChannelStep;
  return kPoints * rows * ((columns + kWidest - 1) / kWidest * kWidest);
}

}  // namespace ltc::cpu
