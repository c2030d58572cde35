// Compiled once per instruction set, with CPU_CAPABILITY saying which; as in tile_kernels.cpp, nothing else may be in here.
#include "row_kernels.h"

#include <string.h>

namespace ltc::torchscript {
namespace {

using Lanes = float __attribute__((vector_size(64)));
constexpr int64_t kLanes = 16;

inline void load(Lanes& lanes, const float* x) { memcpy(&lanes, x, sizeof lanes); }

inline float fold(const Lanes& lanes) {
  float x[kLanes];
  memcpy(x, &lanes, sizeof x);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) x[i] += x[i + half];
  }
  return x[0];
}

// What is summed, of one element or of lanes.
struct Itself {
  template <typename T>
  inline void add(T& sum, const T& value) const {
    sum += value;
  }
};

struct SquaredDistance {
  float from;
  template <typename T>
  inline void add(T& sum, const T& value) const {
    sum += (value - from) * (value - from);
  }
};

// Over at most kPiece elements: four times 16 at once, then what is left.
template <typename Term>
inline double sum_of(const float* x, int64_t count, Term term) {
  Lanes sums[4] = {}, lanes;
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) {
      load(lanes, x + i + k * kLanes);
      term.add(sums[k], lanes);
    }
  }
  for (; i + kLanes <= count; i += kLanes) {
    load(lanes, x + i);
    term.add(sums[0], lanes);
  }
  float rest = 0;
  for (; i < count; ++i) term.add(rest, x[i]);
  sums[0] += sums[1];
  sums[2] += sums[3];
  sums[0] += sums[2];
  return static_cast<double>(fold(sums[0]) + rest);
}

template <typename Term>
inline double sum_in_pieces(const float* x, int64_t count, Term term) {
  double total = 0;
  for (int64_t i = 0; i < count; i += kPiece) total += sum_of(x + i, count - i < kPiece ? count - i : kPiece, term);
  return total;
}

void add_up(const float* x, int64_t rows, int64_t length, double scale, float* out) {
  for (int64_t row = 0; row < rows; ++row) {
    out[row] = static_cast<float>(sum_in_pieces(x + row * length, length, Itself{}) * scale);
  }
}

void add_rows(float* sums, const float* x, int64_t rows, int64_t columns, int64_t stride) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, x += 4 * stride) {
    for (int64_t i = 0; i < columns; ++i) sums[i] += (x[i] + x[stride + i]) + (x[2 * stride + i] + x[3 * stride + i]);
  }
  for (; row < rows; ++row, x += stride) {
    for (int64_t i = 0; i < columns; ++i) sums[i] += x[i];
  }
}

void normalize(const float* x, int64_t rows, int64_t length, const float* weight, const float* bias, double eps,
               const Normalized& to) {
  const auto count = static_cast<double>(length);
  for (int64_t row = 0; row < rows; ++row, x += length) {
    const auto mean = static_cast<float>(sum_in_pieces(x, length, Itself{}) / count);
    const double squares = sum_in_pieces(x, length, SquaredDistance{mean});
    const auto scale = static_cast<float>(1 / __builtin_sqrt(squares / count + eps));
    float* const out = to.out + row * length;
    if (weight && bias) {
      for (int64_t i = 0; i < length; ++i) out[i] = (x[i] - mean) * scale * weight[i] + bias[i];
    } else if (weight) {
      for (int64_t i = 0; i < length; ++i) out[i] = (x[i] - mean) * scale * weight[i];
    } else {
      for (int64_t i = 0; i < length; ++i) out[i] = (x[i] - mean) * scale;
    }
    to.means[row] = mean;
    to.scales[row] = scale;
  }
}

}  // namespace

#define NAME_OF(capability) row_kernels_##capability
#define NAME(capability) NAME_OF(capability)

extern const RowKernels NAME(CPU_CAPABILITY);
const RowKernels NAME(CPU_CAPABILITY) = {add_up, add_rows, normalize};

}  // namespace ltc::torchscript
