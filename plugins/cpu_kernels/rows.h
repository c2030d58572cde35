// Sums, layer norm and softmax of rows of F32: `length` elements side by side, at least one, and rows one after the other. Sums
// have the same bits with every instruction set but for fused multiply-adds in exponentials. Any thread.
#pragma once
#include <cstdint>

namespace ltc::cpu {

inline constexpr int64_t kPiece = 1 << 14;  // elements of a row added up in float; pieces are added in double

struct Normalized {
  float *out, *means, *scales;  // scales: 1 / standard deviation
};

// out[row] = scale times the sum of a row.
void sum_rows(const float* x, int64_t rows, int64_t length, double scale, float* out);

// The sum of at most kPiece elements.
double sum_piece(const float* x, int64_t count);

// Adds rows of `columns` elements that lie `stride` apart to `sums`.
void add_rows(float* sums, const float* x, int64_t rows, int64_t columns, int64_t stride);

// (x - mean) * scale, then times the weight, plus the bias; scale = 1 / sqrt(variance + eps). Weight and bias may be null, the
// bias alone not. The result may lie where x does.
void layer_norm(const float* x, int64_t rows, int64_t length, const float* weight, const float* bias, double eps,
                const Normalized& to);

// The result may lie where x does.
void softmax(const float* x, int64_t rows, int64_t length, float* out);

// Adds the bias to each row and, unless it is null, what lies alike in `other`; with `relu`, what is negative becomes 0.
void add_to_rows(float* x, int64_t rows, int64_t length, const float* bias, const float* other, bool relu);

}  // namespace ltc::cpu
