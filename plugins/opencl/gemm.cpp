#include "opencl/gemm.h"

namespace ltc::opencl {
namespace {

constexpr int64_t kTileRows = 8;

// The sums of a tile stay in registers; the second operand is read once in its order. Rows behind the last one are computed as
// copies of it and not stored.
constexpr std::string_view kSource =
    R"(__kernel void ltc_kernel(__global const float* restrict a, __global const float* restrict b, __global float* restrict c,
                         const int items, const int rows, const int columns, const int length, const int down, const int across,
                         const int offset, const int batch_stride, const int row_stride, const int column_stride) {
  const int tile = (int)get_global_id(0);
  if (tile >= items) return;
  const int batch = tile / (down * across), i = tile % down * ROWS, across_at = tile / down % across, j = across_at * 32;
  a += offset + (long)batch * batch_stride;
  b += ((long)batch * across + across_at) * length * 32;
  c += (long)batch * rows * columns;
  float16 left[ROWS], right[ROWS];
  int at[ROWS];
  #pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    left[r] = right[r] = 0;
    at[r] = min(i + r, rows - 1) * row_stride;
  }
  for (int k = 0; k < length; ++k) {
    const float16 x = vload16(2 * k, b), y = vload16(2 * k + 1, b);
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const float16 z = a[at[r] + k * column_stride];
      left[r] = fma(z, x, left[r]);
      right[r] = fma(z, y, right[r]);
    }
  }
  #pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (i + r >= rows) break;
    __global float* to = c + (long)(i + r) * columns + j;
    if (j + 32 <= columns) {
      vstore16(left[r], 0, to);
      vstore16(right[r], 1, to);
    } else {
      float edge[32];
      vstore16(left[r], 0, edge);
      vstore16(right[r], 1, edge);
      for (int k = 0; k < columns - j; ++k) to[k] = edge[k];
    }
  }
}
)";

}  // namespace

bool wants_gemm(ltc_dtype dtype, int64_t batch, int64_t rows, int64_t columns, int64_t length) {
  const bool fits = batch * rows * columns < INT32_MAX && rows * length < INT32_MAX && length * columns < INT32_MAX;
  return dtype == LTC_F32 && fits && rows * columns * length >= 4096;
}

kernels::Source gemm_source(const kernels::Product& product) {
  const int64_t down = (product.rows + kTileRows - 1) / kTileRows;
  const int64_t across = (product.columns + kTileColumns - 1) / kTileColumns;
  const auto& [value, offset, batch, row, column] = product.a;
  return {
      "#define ROWS " + std::to_string(kTileRows) + "\n" + std::string(kSource),
      {product.batch * down * across, product.rows, product.columns, product.length, down, across, offset, batch, row, column},
      false};
}

}  // namespace ltc::opencl
