// Compiled once per instruction set, with CPU_CAPABILITY saying which; as in tile_kernels.cpp, nothing else may be in here.
#include "torchscript/ops/image_kernels.h"

#include <string.h>

namespace ltc::torchscript {
namespace {

constexpr float kLowest = -__builtin_inff();
constexpr int64_t kChannels = 256;  // at once

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// ---- max-pools

// The first result whose tap lies in the image, and the first after these whose does not.
inline int64_t first_inside(const Window& window, int64_t tap) {
  const int64_t missing = window.padding - tap * window.dilation;
  return missing <= 0 ? 0 : (missing + window.stride - 1) / window.stride;
}
inline int64_t end_inside(const Window& window, int64_t tap) {
  const int64_t last = window.in - 1 + window.padding - tap * window.dilation;
  return last < 0 ? 0 : least(window.out, last / window.stride + 1);
}

// Where a result's first tap inside the image lies.
inline int64_t first_of(const Window& window, int64_t result) {
  int64_t first = result * window.stride - window.padding;
  while (first < 0) first += window.dilation;
  return first;
}

inline void update(float value, int32_t index, float& best, int32_t& where) {
  const bool wins = (value > best) | (value != value);
  best = wins ? value : best;
  where = wins ? index : where;
}

// Where nothing is larger than 0, relu makes all elements equal, and the first wins. For windows that have one.
inline void take_relu(float first, int32_t index, float& best, int32_t& where) {
  const bool none = best <= 0;
  const float zero = first < 0 ? 0 : first;  // -0 stays
  best = none ? zero : best;
  where = none ? index : where;
}

template <int kStride>
inline void tap(float* best, int32_t* where, const float* row, int64_t index, int64_t stride, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = i * (kStride ? kStride : stride);
    update(row[at], static_cast<int32_t>(index + at), best[i], where[i]);
  }
}

template <int kStride>
inline void pool_row(const Pooling& pooling, const float* image, int64_t row, float* best, int32_t* where) {
  const Window &rows = pooling.rows, &columns = pooling.columns;
  for (int64_t y = 0; y < rows.size; ++y) {
    const int64_t from = row * rows.stride - rows.padding + y * rows.dilation;
    if (from < 0 || from >= rows.in) continue;
    for (int64_t x = 0; x < columns.size; ++x) {
      const int64_t offset = from * columns.in + x * columns.dilation - columns.padding;
      tap<kStride>(best, where, image + offset, offset, columns.stride, first_inside(columns, x), end_inside(columns, x));
    }
  }
}

void pool_row(const Pooling& pooling, const float* image, int64_t row, float* best, int64_t* indices) {
  const Window& columns = pooling.columns;
  const int64_t first_row = first_of(pooling.rows, row) * columns.in;
  int32_t where[kMostColumns];
  for (int64_t i = 0; i < columns.out; ++i) {
    best[i] = kLowest;
    where[i] = static_cast<int32_t>(first_row + first_of(columns, i));
  }
  switch (columns.stride) {
    case 1: pool_row<1>(pooling, image, row, best, where); break;
    case 2: pool_row<2>(pooling, image, row, best, where); break;
    default: pool_row<0>(pooling, image, row, best, where);
  }
  const bool has_rows = first_of(pooling.rows, row) < pooling.rows.in;
  for (int64_t i = 0; pooling.relu && has_rows && i < columns.out; ++i) {
    const int64_t column = first_of(columns, i), first = first_row + column;
    if (column < columns.in) take_relu(image[first], static_cast<int32_t>(first), best[i], where[i]);
  }
  for (int64_t i = 0; indices && i < columns.out; ++i) indices[i] = where[i];
}

void pool_pixel(const Pooling& pooling, const float* image, int64_t row, int64_t column, int64_t count, float* best,
                int32_t* where) {
  const Window &rows = pooling.rows, &columns = pooling.columns;
  const int64_t first_row = first_of(rows, row), first_column = first_of(columns, column);
  const int64_t first_index = first_row * columns.in + first_column;
  const auto first = static_cast<int32_t>(first_index);
  for (int64_t i = 0; i < count; ++i) {
    best[i] = kLowest;
    where[i] = first;
  }
  for (int64_t y = 0; y < rows.size; ++y) {
    const int64_t from_row = row * rows.stride - rows.padding + y * rows.dilation;
    if (from_row < 0 || from_row >= rows.in) continue;
    for (int64_t x = 0; x < columns.size; ++x) {
      const int64_t from_column = column * columns.stride - columns.padding + x * columns.dilation;
      if (from_column < 0 || from_column >= columns.in) continue;
      const int64_t index = from_row * columns.in + from_column;
      const float* const from = image + index * pooling.channels;
      for (int64_t i = 0; i < count; ++i) update(from[i], static_cast<int32_t>(index), best[i], where[i]);
    }
  }
  if (!pooling.relu || first_row >= rows.in || first_column >= columns.in) return;
  const float* const firsts = image + first_index * pooling.channels;
  for (int64_t i = 0; i < count; ++i) take_relu(firsts[i], first, best[i], where[i]);
}

void pool_pixels(const Pooling& pooling, const float* image, int64_t row, float* to, int64_t* indices) {
  float best[kChannels];
  int32_t where[kChannels];
  for (int64_t column = 0; column < pooling.columns.out; ++column) {
    for (int64_t first = 0; first < pooling.channels; first += kChannels) {
      const int64_t count = least(kChannels, pooling.channels - first), at = column * pooling.channels + first;
      pool_pixel(pooling, image + first, row, column, count, best, where);
      memcpy(to + at, best, static_cast<size_t>(count) * sizeof(float));
      for (int64_t i = 0; indices && i < count; ++i) indices[at + i] = where[i];
    }
  }
}

// ---- transposed matrices, in tiles of 8 x 8

constexpr int kSide = 8;
using Row = float __attribute__((vector_size(4 * kSide)));

inline void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Row a[kSide], b[kSide];
  for (int i = 0; i < kSide; ++i) memcpy(&a[i], from + i * from_stride, sizeof(Row));
  for (int i = 0; i < kSide; i += 2) {
    b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < kSide; i += 4) {
    for (int k = 0; k < 2; ++k) {
      a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
      a[i + 2 * k + 1] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < kSide / 2; ++i) {
    b[i] = __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    b[i + 4] = __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < kSide; ++i) memcpy(to + i * to_stride, &b[i], sizeof(Row));
}

void transpose(const float* from, int64_t rows, int64_t columns, int64_t stride, float* to) {
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t row = 0; row < whole_rows; row += kSide) {
    for (int64_t column = 0; column < whole_columns; column += kSide) {
      transpose_tile(from + row * stride + column, stride, to + column * rows + row, rows);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column) {
      to[column * rows + row] = from[row * stride + column];
    }
  }
}

}  // namespace

#define NAME_OF(capability) image_kernels_##capability
#define NAME(capability) NAME_OF(capability)

extern const ImageKernels NAME(CPU_CAPABILITY);
const ImageKernels NAME(CPU_CAPABILITY) = {pool_row, pool_pixels, transpose};

}  // namespace ltc::torchscript
