#include "cpu_kernels/skinny.h"

#include "cpu_kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_kernels/skinny.cpp"
#include <hwy/foreach_target.h>

#include "cpu_kernels/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int kSums = kHasManyRegisters ? 24 : 12;  // registers for sums; the others hold operands
constexpr int kMost = 8;                            // rows or columns of a tile
constexpr int kDeep = 16;                           // rows of b that are added up together at most

// ---- dot: the sums of kRows x kColumns results in vectors along the inner dim

template <int kRows, int kColumns, typename Load>
inline void add_products(Vec (&sums)[kRows][kColumns], const ConstMatrixView& a, const ConstMatrixView& b, int64_t k, Load load) {
  Vec right[kColumns];
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j) right[j] = load(b.data + j * b.column_stride + k);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const Vec left = load(a.data + i * a.row_stride + k);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) sums[i][j] = multiply_add(left, right[j], sums[i][j]);
  }
}

template <int kRows, int kColumns>
void dot_tile(const SkinnyProduct& product, int64_t column) {
  ConstMatrixView b = product.b;
  b.data += column * b.column_stride;
  Vec sums[kRows][kColumns];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) sums[i][j] = Vec(0.f);
  }
  int64_t k = 0;
  for (; k + kWidth <= product.inner; k += kWidth) {
    add_products(sums, product.a, b, k, [](const float* x) { return Vec::load(x); });
  }
  if (const int64_t rest = product.inner - k) {
    add_products(sums, product.a, b, k, [rest](const float* x) { return load_first(x, rest); });
  }
  const ConstMatrixView& addend = product.addend;
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) {
      float result = fold(sums[i][j]);
      if (addend.data) result += addend.data[i * addend.row_stride + (column + j) * addend.column_stride];
      product.out.data[i * product.out.row_stride + (column + j) * product.out.column_stride] = result;
    }
  }
}

template <int kRows>
void dot_rows(const SkinnyProduct& product) {
  constexpr int kColumns = kSums / kRows < kMost ? kSums / kRows : kMost;
  int64_t column = 0;
  for (; column + kColumns <= product.columns; column += kColumns) dot_tile<kRows, kColumns>(product, column);
  for (; column < product.columns; ++column) dot_tile<kRows, 1>(product, column);
}

// ---- add_rows: rows of b, each times an element of a, are added to rows of the result, some together

template <int kRows, int kVectors, typename Load, typename Store>
inline void add_rows_tile(const float (&left)[kDeep][kMost], int64_t depth, const SkinnyProduct& product, int64_t column,
                          Load load, Store store) {
  const ConstMatrixView& addend = product.addend;
  Vec sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sums[i][j] = Vec(0.f);
  }
  const float* b = product.b.data + column;
  for (int64_t k = 0; k < depth; ++k, b += product.b.row_stride) {
    Vec right[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) right[j] = load(b + j * kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const Vec one(left[k][i]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sums[i][j] = multiply_add(one, right[j], sums[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      const int64_t at = column + j * kWidth;
      if (addend.data) {
        const float* const added = addend.data + i * addend.row_stride;
        sums[i][j] = (addend.column_stride == 0 ? Vec(*added) : load(added + at)) + sums[i][j];
      }
      store(product.out.data + i * product.out.row_stride + at, sums[i][j]);
    }
  }
}

// Some rows of b at a time: what they make is added up before it is added to what is there. With few rows of the result memory
// is what is waited for, and reads from fewer rows are fetched ahead better: 4 x 9216 x 128 takes .72 of its time by 16.
template <int kRows>
void add_rows_of(const SkinnyProduct& whole) {
  constexpr int kVectors = 2 * kRows <= kSums ? 2 : 1;
  constexpr int kDepth = kRows <= 4 ? 8 : kDeep;
  SkinnyProduct product = whole;
  for (int64_t k = 0; k < product.inner; k += kDepth) {
    const int64_t depth = least(kDepth, product.inner - k);
    float left[kDeep][kMost];
    for (int64_t d = 0; d < depth; ++d) {
      for (int i = 0; i < kRows; ++i) left[d][i] = product.a.data[i * product.a.row_stride + (k + d) * product.a.column_stride];
    }
    int64_t column = 0;
    for (; column + kVectors * kWidth <= product.columns; column += kVectors * kWidth) {
      add_rows_tile<kRows, kVectors>(
          left, depth, product, column, [](const float* x) { return Vec::load(x); },
          [](float* to, const Vec& x) { x.store(to); });
    }
    while (column < product.columns) {
      const int64_t count = least(kWidth, product.columns - column);
      add_rows_tile<kRows, 1>(
          left, depth, product, column, [count](const float* x) { return load_first(x, count); },
          [count](float* to, const Vec& x) { store_first(x, to, count); });
      column += count;
    }
    product.b.data += kDepth * product.b.row_stride;
    product.addend = {product.out.data, product.out.row_stride, 1};
  }
}

// ---- rows by `most`

using OfRows = void (*)(const SkinnyProduct& product);
constexpr OfRows kDot[kMost] = {dot_rows<1>, dot_rows<2>, dot_rows<3>, dot_rows<4>,
                                dot_rows<5>, dot_rows<6>, dot_rows<7>, dot_rows<8>};
constexpr OfRows kAddRows[kMost] = {add_rows_of<1>, add_rows_of<2>, add_rows_of<3>, add_rows_of<4>,
                                    add_rows_of<5>, add_rows_of<6>, add_rows_of<7>, add_rows_of<8>};

void by_rows(const OfRows* of_rows, int64_t most, SkinnyProduct product) {
  for (int64_t rows = product.rows; rows > 0; rows -= most) {
    of_rows[least(rows, most) - 1](product);
    product.a.data += most * product.a.row_stride;
    product.out.data += most * product.out.row_stride;
    if (product.addend.data) product.addend.data += most * product.addend.row_stride;
  }
}

void dot(const SkinnyProduct& product) {
  SkinnyProduct piece = product;
  for (int64_t k = 0; k < product.inner; k += kMostTerms) {
    piece.inner = least(kMostTerms, product.inner - k);
    by_rows(kDot, kMost, piece);
    piece.a.data += kMostTerms;
    piece.b.data += kMostTerms;
    piece.addend = {product.out.data, product.out.row_stride, product.out.column_stride};
  }
}

// Many rows are written: four at once, since rows that lie a multiple of a page apart share few lines of a cache.
void add_rows(const SkinnyProduct& product) { by_rows(kAddRows, product.rows > kMost ? kMost / 2 : kMost, product); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ltc::cpu {

void skinny_dot(const SkinnyProduct& product) { LTC_CHOSEN(dot)(product); }
void skinny_add_rows(const SkinnyProduct& product) { LTC_CHOSEN(add_rows)(product); }

}  // namespace ltc::cpu
#endif
