#include "cpu_kernels/rows.h"

#include "cpu_kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_kernels/rows.cpp"
#include <hwy/foreach_target.h>

#include "cpu_kernels/floats-inl.h"
#include "cpu_kernels/maths-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

// As many on every machine, so that sums have the same bits.
constexpr int64_t kSixteen = 16;
using Sixteen = Floats<kSixteen>;
constexpr int64_t kAhead = 512;  // elements that sums fetch ahead

HWY_INLINE void load(Sixteen& lanes, const float* x) { lanes = Sixteen::load(x); }
HWY_INLINE void load(float& one, const float* x) { one = *x; }

// The term of a sum, for one element or for lanes.
struct Itself {
  template <typename T>
  HWY_INLINE void add(T& sum, const T& value) const {
    sum = sum + value;
  }
};

struct SquaredDistance {
  float from;
  template <typename T>
  HWY_INLINE void add(T& sum, const T& value) const {
    const T distance = value - T(from);
    sum = sum + distance * distance;
  }
};

// Over at most kPiece elements: four times 16 at once, then what is left.
template <typename Term>
inline double sum_of(const float* x, int64_t count, Term term) {
  Sixteen sums[4] = {}, lanes;
  int64_t i = 0;
  for (; i + 4 * kSixteen <= count; i += 4 * kSixteen) {
    for (int64_t k = 0; k < 4; ++k) {
      __builtin_prefetch(x + i + k * kSixteen + kAhead);
      load(lanes, x + i + k * kSixteen);
      term.add(sums[k], lanes);
    }
  }
  for (; i + kSixteen <= count; i += kSixteen) {
    load(lanes, x + i);
    term.add(sums[0], lanes);
  }
  float rest = 0;
  for (; i < count; ++i) term.add(rest, x[i]);
  return static_cast<double>(fold((sums[0] + sums[1]) + (sums[2] + sums[3])) + rest);
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

void add_each(float* sums, const float* x, int64_t rows, int64_t columns, int64_t stride) {
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
  for (; i + kSixteen <= length; i += kSixteen) {
    apply((Sixteen::load(x + i) - Sixteen(mean)) * Sixteen(scale), i).store(out + i);
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
  Sixteen most[4] = {Sixteen(kLeast), Sixteen(kLeast), Sixteen(kLeast), Sixteen(kLeast)};
  int64_t i = 0;
  for (; i + 4 * kSixteen <= length; i += 4 * kSixteen) {
    for (int64_t k = 0; k < 4; ++k) most[k] = larger(Sixteen::load(x + i + k * kSixteen), most[k]);
  }
  for (; i + kSixteen <= length; i += kSixteen) most[0] = larger(Sixteen::load(x + i), most[0]);
  float result = fold(larger(larger(most[0], most[1]), larger(most[2], most[3])), Larger{});
  for (; i < length; ++i) result = Larger{}(x[i], result);
  return result;
}

// The exponential of a number that is not positive.
inline float exp_below(float x) { return ltc_exp_within_f32(x < -105.f ? -105.f : x); }
HWY_INLINE Sixteen exp_below(const Sixteen& x) {
  float each[kSixteen];
  x.store(each);
  for (float& one : each) one = exp_below(one);
  return Sixteen::load(each);
}

// Writes exp(x - most) of at most kPiece elements and returns the sum.
inline double write_exponentials(float* out, const float* x, int64_t count, float most) {
  Sixteen sums[2] = {};
  const auto step = [&](int64_t i, Sixteen& sum) HWY_ATTR {
    const Sixteen each = exp_below(Sixteen::load(x + i) - Sixteen(most));
    sum = sum + each;
    each.store(out + i);
  };
  int64_t i = 0;
  for (; i + 2 * kSixteen <= count; i += 2 * kSixteen) {
    step(i, sums[0]);
    step(i + kSixteen, sums[1]);
  }
  for (; i + kSixteen <= count; i += kSixteen) step(i, sums[0]);
  float rest = 0;
  for (; i < count; ++i) rest += out[i] = exp_below(x[i] - most);
  return static_cast<double>(fold(sums[0] + sums[1]) + rest);
}

void softmax_each(const float* x, int64_t rows, int64_t length, float* out) {
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
inline void add_terms(float* x, int64_t rows, int64_t length, const float* bias, const float* other) {
  for (int64_t row = 0; row < rows; ++row, x += length, other += kOther ? length : 0) {
    for (int64_t i = 0; i < length; ++i) {
      float sum = x[i] + bias[i];
      if (kOther) sum += other[i];
      x[i] = kRelu && sum < 0 ? 0 : sum;
    }
  }
}

void add_to_each(float* x, int64_t rows, int64_t length, const float* bias, const float* other, bool relu) {
  if (other)
    return relu ? add_terms<true, true>(x, rows, length, bias, other) : add_terms<true, false>(x, rows, length, bias, other);
  relu ? add_terms<false, true>(x, rows, length, bias, other) : add_terms<false, false>(x, rows, length, bias, other);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ltc::cpu {

void sum_rows(const float* x, int64_t rows, int64_t length, double scale, float* out) {
  LTC_CHOSEN(add_up)(x, rows, length, scale, out);
}
double sum_piece(const float* x, int64_t count) { return LTC_CHOSEN(sum)(x, count); }
void add_rows(float* sums, const float* x, int64_t rows, int64_t columns, int64_t stride) {
  LTC_CHOSEN(add_each)(sums, x, rows, columns, stride);
}
void layer_norm(const float* x, int64_t rows, int64_t length, const float* weight, const float* bias, double eps,
                const Normalized& to) {
  LTC_CHOSEN(normalize)(x, rows, length, weight, bias, eps, to);
}
void softmax(const float* x, int64_t rows, int64_t length, float* out) { LTC_CHOSEN(softmax_each)(x, rows, length, out); }
void add_to_rows(float* x, int64_t rows, int64_t length, const float* bias, const float* other, bool relu) {
  LTC_CHOSEN(add_to_each)(x, rows, length, bias, other, relu);
}

}  // namespace ltc::cpu
#endif
