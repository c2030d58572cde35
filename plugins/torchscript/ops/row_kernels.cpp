// Compiled once per instruction set, with CPU_CAPABILITY saying which; as in tile_kernels.cpp, nothing else may be in here.
#include "torchscript/ops/row_kernels.h"

#include <string.h>

#include "kernels/print/maths.h"
#include "torchscript/ops/fold.h"

namespace ltc::torchscript {
namespace {

using Lanes = SixteenLanes;
constexpr int64_t kLanes = 16;
constexpr int64_t kAhead = 512;  // elements that sums fetch ahead

inline void load(Lanes& lanes, const float* x) { memcpy(&lanes, x, sizeof lanes); }
inline void load(float& one, const float* x) { one = *x; }

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
      __builtin_prefetch(x + i + k * kLanes + kAhead);
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

double sum(const float* x, int64_t count) { return sum_of(x, count, Itself{}); }

void add_rows(float* sums, const float* x, int64_t rows, int64_t columns, int64_t stride) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4, x += 4 * stride) {
    for (int64_t i = 0; i < columns; ++i) sums[i] += (x[i] + x[stride + i]) + (x[2 * stride + i] + x[3 * stride + i]);
  }
  for (; row < rows; ++row, x += stride) {
    for (int64_t i = 0; i < columns; ++i) sums[i] += x[i];
  }
}

// out = (x - mean) * scale, then what `apply` makes of it, for lanes and for what is left.
template <typename Apply>
inline void write_row(float* out, const float* x, int64_t length, float mean, float scale, Apply apply) {
  int64_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    Lanes lanes;
    load(lanes, x + i);
    lanes = apply((lanes - mean) * scale, i);
    memcpy(out + i, &lanes, sizeof lanes);
  }
  for (; i < length; ++i) out[i] = apply((x[i] - mean) * scale, i);
}

// Weight and bias may be null, the bias alone not.
void write_row(float* out, const float* x, int64_t length, float mean, float scale, const float* weight, const float* bias) {
  if (!weight) return write_row(out, x, length, mean, scale, [](auto value, int64_t) { return value; });
  if (!bias) {
    return write_row(out, x, length, mean, scale, [&](auto value, int64_t i) {
      decltype(value) factor;
      load(factor, weight + i);
      return value * factor;
    });
  }
  write_row(out, x, length, mean, scale, [&](auto value, int64_t i) {
    decltype(value) factor, term;
    load(factor, weight + i);
    load(term, bias + i);
    return value * factor + term;
  });
}

// Short rows are normalised some together, step by step: one need not wait for the sums of the one before.
constexpr int64_t kMostRows = 16;
constexpr int64_t kCachedElements = 4096;  // of these rows

void normalize(const float* x, int64_t rows, int64_t length, const float* weight, const float* bias, double eps,
               const Normalized& to) {
  int64_t together = length < kCachedElements ? kCachedElements / length : 1;
  if (together > kMostRows) together = kMostRows;
  const auto count = static_cast<double>(length);
  double sums[kMostRows] = {};
  for (int64_t first = 0; first < rows; first += together) {
    const int64_t here = rows - first < together ? rows - first : together;
    const float* const from = x + first * length;
    float *const means = to.means + first, *const scales = to.scales + first;
    for (int64_t row = 0; row < here; ++row) sums[row] = sum_in_pieces(from + row * length, length, Itself{});
    for (int64_t row = 0; row < here; ++row) means[row] = static_cast<float>(sums[row] / count);
    for (int64_t row = 0; row < here; ++row) sums[row] = sum_in_pieces(from + row * length, length, SquaredDistance{means[row]});
    for (int64_t row = 0; row < here; ++row) scales[row] = static_cast<float>(1 / __builtin_sqrt(sums[row] / count + eps));
    for (int64_t row = 0; row < here; ++row) {
      write_row(to.out + (first + row) * length, from + row * length, length, means[row], scales[row], weight, bias);
    }
  }
}

// -inf of a row of NaN: those show in what is computed with it.
inline float largest(const float* x, int64_t length) {
  constexpr float kLeast = -__builtin_inff();
  constexpr Larger larger;
  Lanes most[4] = {Lanes{} + kLeast, Lanes{} + kLeast, Lanes{} + kLeast, Lanes{} + kLeast}, lanes;
  int64_t i = 0;
  for (; i + 4 * kLanes <= length; i += 4 * kLanes) {
    for (int64_t k = 0; k < 4; ++k) {
      load(lanes, x + i + k * kLanes);
      most[k] = larger(lanes, most[k]);
    }
  }
  for (; i + kLanes <= length; i += kLanes) {
    load(lanes, x + i);
    most[0] = larger(lanes, most[0]);
  }
  most[0] = larger(larger(most[0], most[1]), larger(most[2], most[3]));
  float result = fold(most[0], larger);
  for (; i < length; ++i) result = larger(x[i], result);
  return result;
}

// Of numbers that are not positive.
inline float exp_below(float x) { return ltc_exp_within_f32(x < -105.f ? -105.f : x); }
inline Lanes exp_below(const Lanes& x) {
  float each[kLanes];
  memcpy(each, &x, sizeof each);
  for (float& one : each) one = exp_below(one);
  Lanes lanes;
  load(lanes, each);
  return lanes;
}

// Writes exp(x - most) of at most kPiece elements and returns the sum.
inline double write_exponentials(float* out, const float* x, int64_t count, float most) {
  Lanes sums[2] = {}, lanes;
  const auto step = [&](int64_t i, Lanes& sum) {
    load(lanes, x + i);
    lanes = exp_below(lanes - most);
    sum += lanes;
    memcpy(out + i, &lanes, sizeof lanes);
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    step(i, sums[0]);
    step(i + kLanes, sums[1]);
  }
  for (; i + kLanes <= count; i += kLanes) step(i, sums[0]);
  float rest = 0;
  for (; i < count; ++i) rest += out[i] = exp_below(x[i] - most);
  return static_cast<double>(fold(sums[0] + sums[1]) + rest);
}

void softmax(const float* x, int64_t rows, int64_t length, float* out) {
  for (int64_t row = 0; row < rows; ++row, x += length, out += length) {
    const float most = largest(x, length);
    double sum = 0;
    for (int64_t i = 0; i < length; i += kPiece) {
      sum += write_exponentials(out + i, x + i, length - i < kPiece ? length - i : kPiece, most);
    }
    const auto scale = static_cast<float>(1 / sum);
    for (int64_t i = 0; i < length; ++i) out[i] *= scale;
  }
}

template <bool kOther, bool kRelu>
inline void add_to_rows(float* x, int64_t rows, int64_t length, const float* bias, const float* other) {
  for (int64_t row = 0; row < rows; ++row, x += length, other += kOther ? length : 0) {
    for (int64_t i = 0; i < length; ++i) {
      float sum = x[i] + bias[i];
      if (kOther) sum += other[i];
      x[i] = kRelu && sum < 0 ? 0 : sum;
    }
  }
}

void add_to_rows(float* x, int64_t rows, int64_t length, const float* bias, const float* other, bool relu) {
  if (other)
    return relu ? add_to_rows<true, true>(x, rows, length, bias, other) : add_to_rows<true, false>(x, rows, length, bias, other);
  relu ? add_to_rows<false, true>(x, rows, length, bias, other) : add_to_rows<false, false>(x, rows, length, bias, other);
}

}  // namespace

#define NAME_OF(capability) row_kernels_##capability
#define NAME(capability) NAME_OF(capability)

extern const RowKernels NAME(CPU_CAPABILITY);
const RowKernels NAME(CPU_CAPABILITY) = {add_up, sum, add_rows, normalize, softmax, add_to_rows};

}  // namespace ltc::torchscript
