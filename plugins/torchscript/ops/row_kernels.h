// The loops of rows.h, compiled once per instruction set.
#pragma once
#include <cstdint>

namespace ltc::torchscript {

inline constexpr int64_t kPiece = 1 << 14;  // elements of a row added up in float; pieces are added in double

struct Normalized {
  float *out, *means, *scales;  // scales: 1 / standard deviation
};

struct RowKernels {
  // out[row] = scale times the sum of a row of `length` elements; rows lie one after the other.
  void (*add_up)(const float* x, int64_t rows, int64_t length, double scale, float* out);
  // Of at most kPiece elements.
  double (*sum)(const float* x, int64_t count);
  // Adds rows of `columns` elements that lie `stride` apart to `sums`.
  void (*add_rows)(float* sums, const float* x, int64_t rows, int64_t columns, int64_t stride);
  // As aten::native_layer_norm; weight and bias may be null, the bias alone not. The result may lie where x does.
  void (*normalize)(const float* x, int64_t rows, int64_t length, const float* weight, const float* bias, double eps,
                    const Normalized& to);
  // As aten::_softmax over the last dim; the result may lie where x does.
  void (*softmax)(const float* x, int64_t rows, int64_t length, float* out);
  // Adds the bias and, unless it is null, what lies alike in `other`; with `relu`, what is negative becomes 0.
  void (*add_to_rows)(float* x, int64_t rows, int64_t length, const float* bias, const float* other, bool relu);
};

// The fastest that this machine has and ATEN_CPU_CAPABILITY allows.
const RowKernels& row_kernels();

}  // namespace ltc::torchscript
