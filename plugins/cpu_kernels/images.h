// Max-pools of F32 images, and transposed matrices. Any thread.
#pragma once
#include <cstdint>

namespace ltc::cpu {

// One dim of a pool. All members count elements.
struct Window {
  int64_t size, stride, padding, dilation, in, out;
};

struct Pooling {
  Window rows, columns;
  int64_t channels;  // of which an element has all, in channels-last images
  bool relu;         // of what relu makes of the image
};

inline constexpr int64_t kMostColumns = 1024;

// A row of results and, unless null, of their indices. A NaN wins, and the first of equal elements. A row is one channel of a
// row-major image, at most kMostColumns results long, or all channels of a channels-last image. An image has less than 2^31
// elements.
void pool_row(const Pooling& pooling, const float* image, int64_t row, float* best, int64_t* indices);
void pool_pixels(const Pooling& pooling, const float* image, int64_t row, float* best, int64_t* indices);

// Some columns of a matrix of `stride` columns, which become rows of `rows` elements.
void transpose(const float* from, int64_t rows, int64_t columns, int64_t stride, float* to);

}  // namespace ltc::cpu
