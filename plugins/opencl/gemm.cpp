#include "gemm.h"

namespace ltc::opencl {
namespace {

constexpr int64_t kTileRows = 8, kTileColumns = 32;

// Whole tiles in vectors; at the edges one element after the other.
constexpr std::string_view kSource = R"(#define ROWS 8
__kernel void ltc_kernel(__global const float* restrict a, __global const float* restrict b, __global float* restrict c,
                         const int items, const int rows, const int columns, const int length, const int tiles_down,
                         const int tiles_across) {
  const int tile = (int)get_global_id(0);
  if (tile >= items) return;
  const int batch = tile / (tiles_down * tiles_across);
  const int i = tile / tiles_across % tiles_down * ROWS, j = tile % tiles_across * 32;
  a += (long)batch * rows * length + (long)i * length;
  b += (long)batch * length * columns + j;
  c += (long)batch * rows * columns + (long)i * columns + j;
  if (i + ROWS <= rows && j + 32 <= columns) {
    float16 left[ROWS], right[ROWS];
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) left[r] = right[r] = 0;
    for (int k = 0; k < length; ++k) {
      const float16 x = vload16(0, b + (long)k * columns), y = vload16(1, b + (long)k * columns);
      #pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const float16 z = a[r * length + k];
        left[r] = fma(z, x, left[r]);
        right[r] = fma(z, y, right[r]);
      }
    }
    #pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      vstore16(left[r], 0, c + (long)r * columns);
      vstore16(right[r], 1, c + (long)r * columns);
    }
  } else {
    for (int r = 0; r < ROWS && i + r < rows; ++r) {
      float sum[32];
      const int count = min(32, columns - j);
      for (int k = 0; k < count; ++k) sum[k] = 0;
      for (int k = 0; k < length; ++k) {
        const float z = a[r * length + k];
        for (int column = 0; column < count; ++column) sum[column] = fma(z, b[(long)k * columns + column], sum[column]);
      }
      for (int k = 0; k < count; ++k) c[(long)r * columns + k] = sum[k];
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
  return {
      std::string(kSource), {product.batch * down * across, product.rows, product.columns, product.length, down, across}, false};
}

}  // namespace ltc::opencl
