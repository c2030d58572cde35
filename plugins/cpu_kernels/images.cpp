#include "cpu_kernels/images.h"

#include "cpu_kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_kernels/images.cpp"
#include <hwy/foreach_target.h>

#include <string.h>

#include "cpu_kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr float kLowest = -__builtin_inff();
constexpr int64_t kChannels = 256;  // at once

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
inline void pool_windows(const Pooling& pooling, const float* image, int64_t row, float* best, int32_t* where) {
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

void pool_channel(const Pooling& pooling, const float* image, int64_t row, float* best, int64_t* indices) {
  const Window& columns = pooling.columns;
  const int64_t first_row = first_of(pooling.rows, row) * columns.in;
  int32_t where[kMostColumns];
  for (int64_t i = 0; i < columns.out; ++i) {
    best[i] = kLowest;
    where[i] = static_cast<int32_t>(first_row + first_of(columns, i));
  }
  switch (columns.stride) {
    case 1: pool_windows<1>(pooling, image, row, best, where); break;
    case 2: pool_windows<2>(pooling, image, row, best, where); break;
    default: pool_windows<0>(pooling, image, row, best, where);
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

void pool_channels(const Pooling& pooling, const float* image, int64_t row, float* to, int64_t* indices) {
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

// ---- transposed matrices, in tiles

void transpose_matrix(const float* from, int64_t rows, int64_t columns, int64_t stride, float* to) {
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t row = 0; row < whole_rows; row += kSide) {
    for (int64_t column = 0; column < whole_columns; column += kSide) {
      transpose_tile(from + row * stride + column, stride, to + column * rows + row, rows);
    }
  }
  for (int64_t row = 0; row < whole_rows; ++row) {
    for (int64_t column = whole_columns; column < columns; ++column) to[column * rows + row] = from[row * stride + column];
  }
  for (int64_t row = whole_rows; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) to[column * rows + row] = from[row * stride + column];
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ltc::cpu {

void pool_row(const Pooling& pooling, const float* image, int64_t row, float* best, int64_t* indices) {
  LTC_CHOSEN(pool_channel)(pooling, image, row, best, indices);
}
void pool_pixels(const Pooling& pooling, const float* image, int64_t row, float* best, int64_t* indices) {
  LTC_CHOSEN(pool_channels)(pooling, image, row, best, indices);
}
void transpose(const float* from, int64_t rows, int64_t columns, int64_t stride, float* to) {
  LTC_CHOSEN(transpose_matrix)(from, rows, columns, stride, to);
}

}  // namespace ltc::cpu
#endif
