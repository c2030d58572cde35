// Tiles of products of F32 matrices, whose sums fill the registers. Compiled once per target.
#if defined(LTC_CPU_KERNELS_PRODUCT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LTC_CPU_KERNELS_PRODUCT_TILE_INL_H_
#undef LTC_CPU_KERNELS_PRODUCT_TILE_INL_H_
#else
#define LTC_CPU_KERNELS_PRODUCT_TILE_INL_H_
#endif

#include "cpu_kernels/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kPanel = 2 * kWidth;  // columns of a tile
// Its rows at most.
constexpr int kTileRows = kHasManyRegisters ? 12 : 6;

// Read element by element where it lies, by rows or by columns.
struct LeftOperand {
  const float* data;
  int64_t row_stride, column_stride;
};

// The columns of a tile of it lie side by side.
struct RightOperand {
  const float* data;
  int64_t row_stride;
};

// to (+)= a b, kRows x kVectors of columns.
template <int kRows, int kVectors>
void multiply_tile(const LeftOperand& a, const RightOperand& b, int64_t depth, float* to, int64_t to_stride, bool add) {
  Vec sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = Vec(0.f);
  }
  const float *left = a.data, *row = b.data;
  for (int64_t k = 0; k < depth; ++k, left += a.column_stride, row += b.row_stride) {
    Vec right[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) right[j] = Vec::load(row + j * kWidth);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vec one(left[i * a.row_stride]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[i][j] = multiply_add(one, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      float* const out = to + i * to_stride + j * kWidth;
      (add ? sums[i][j] + Vec::load(out) : sums[i][j]).store(out);
    }
  }
}

using Tile = void (*)(const LeftOperand&, const RightOperand&, int64_t depth, float* to, int64_t to_stride, bool add);

// By rows.
template <int kVectors>
constexpr Tile kTiles[] = {nullptr,
                           multiply_tile<1, kVectors>,
                           multiply_tile<2, kVectors>,
                           multiply_tile<3, kVectors>,
                           multiply_tile<4, kVectors>,
                           multiply_tile<5, kVectors>,
                           multiply_tile<6, kVectors>,
#if LTC_HAS_MANY_REGISTERS
                           multiply_tile<7, kVectors>,
                           multiply_tile<8, kVectors>,
                           multiply_tile<9, kVectors>,
                           multiply_tile<10, kVectors>,
                           multiply_tile<11, kVectors>,
                           multiply_tile<12, kVectors>
#endif
};

// All rows of a tile's columns, one vector of them or two: to (+)= a b.
inline void multiply_panel(const LeftOperand& a, int64_t rows, int64_t depth, const RightOperand& b, bool is_wide, float* to,
                           int64_t to_stride, bool add) {
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t row = rows * i / tiles, count = rows * (i + 1) / tiles - row;
    (is_wide ? kTiles<2> : kTiles<1>)[count]({a.data + row * a.row_stride, a.row_stride, a.column_stride}, b, depth,
                                             to + row * to_stride, to_stride, add);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();
#endif
