// Products of F32 matrices of which one side is short: a few rows times a matrix as inference has them, and the gradients of
// that. Each element of the large matrix is read or written once, and that is what takes the time. Any thread.
#pragma once
#include <cstdint>

namespace ltc::cpu {

// In elements.
struct MatrixView {
  float* data;
  int64_t row_stride, column_stride;
};
struct ConstMatrixView {
  const float* data;
  int64_t row_stride, column_stride;
};

// out (rows x columns) = addend + a (rows x inner) times b (inner x columns). All sizes are at least 1; the addend's data may be
// null, its strides 0. Each element is one thread's, and the order in which its sum is formed follows from the sizes.
struct SkinnyProduct {
  int64_t rows, inner, columns;
  ConstMatrixView a, b, addend;
  MatrixView out;
};

inline constexpr int64_t kMostTerms = 8192;  // of a sum that is formed without pieces, for the sake of its error

// a by rows (column stride 1), b by columns (row stride 1).
void skinny_dot(const SkinnyProduct& product);

// At most kMostTerms inner elements, b and out by rows, the addend too or with column stride 0.
void skinny_add_rows(const SkinnyProduct& product);

}  // namespace ltc::cpu
