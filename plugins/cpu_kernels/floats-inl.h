// Vectors of floats, compiled once per target.
#if defined(LTC_CPU_KERNELS_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LTC_CPU_KERNELS_FLOATS_INL_H_
#undef LTC_CPU_KERNELS_FLOATS_INL_H_
#else
#define LTC_CPU_KERNELS_FLOATS_INL_H_
#endif

#include <hwy/highway.h>
#include <string.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(!HWY_HAVE_SCALABLE, "vectors of unknown size cannot lie in arrays");
constexpr int kNative = HWY_MAX_BYTES / sizeof(float);  // of the machine's widest vector
constexpr bool kHasX86Vectors = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;
#undef LTC_HAS_MANY_REGISTERS  // 32
#define LTC_HAS_MANY_REGISTERS (HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64)
constexpr bool kHasManyRegisters = LTC_HAS_MANY_REGISTERS;

// kCount floats: two halves, or else one of the machine's vectors.
template <int kCount>
struct Floats {
  using Half = Floats<kCount / 2>;
  Half first, second;

  Floats() = default;
  HWY_INLINE Floats(const Half& first, const Half& second) : first(first), second(second) {}
  HWY_INLINE explicit Floats(float x) : first(x), second(x) {}
  static HWY_INLINE Floats load(const float* x) { return {Half::load(x), Half::load(x + kCount / 2)}; }
  HWY_INLINE void store(float* to) const { first.store(to), second.store(to + kCount / 2); }
  HWY_INLINE Half low() const { return first; }
  HWY_INLINE Half high() const { return second; }

  friend HWY_INLINE Floats operator+(const Floats& a, const Floats& b) { return {a.first + b.first, a.second + b.second}; }
  friend HWY_INLINE Floats operator-(const Floats& a, const Floats& b) { return {a.first - b.first, a.second - b.second}; }
  friend HWY_INLINE Floats operator*(const Floats& a, const Floats& b) { return {a.first * b.first, a.second * b.second}; }
  friend HWY_INLINE Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return {multiply_add(a.first, b.first, c.first), multiply_add(a.second, b.second, c.second)};
  }
  friend HWY_INLINE Floats larger(const Floats& a, const Floats& b) {
    return {larger(a.first, b.first), larger(a.second, b.second)};
  }
  friend HWY_INLINE Floats smaller(const Floats& a, const Floats& b) {
    return {smaller(a.first, b.first), smaller(a.second, b.second)};
  }
  friend HWY_INLINE Floats only_nan(const Floats& x) { return {only_nan(x.first), only_nan(x.second)}; }
};

template <int kCount>
requires(kCount <= kNative) struct Floats<kCount> {
  using D = hn::CappedTag<float, kCount>;
  using Half = Floats<kCount / 2>;
  hn::Vec<D> raw;

  Floats() = default;
  HWY_INLINE Floats(hn::Vec<D> raw) : raw(raw) {}
  HWY_INLINE explicit Floats(float x) : raw(hn::Set(D(), x)) {}
  static HWY_INLINE Floats load(const float* x) { return hn::LoadU(D(), x); }
  HWY_INLINE void store(float* to) const { hn::StoreU(raw, D(), to); }
  HWY_INLINE Half low() const { return hn::LowerHalf(hn::Half<D>(), raw); }
  HWY_INLINE Half high() const { return hn::UpperHalf(hn::Half<D>(), raw); }

  friend HWY_INLINE Floats operator+(const Floats& a, const Floats& b) { return hn::Add(a.raw, b.raw); }
  friend HWY_INLINE Floats operator-(const Floats& a, const Floats& b) { return hn::Sub(a.raw, b.raw); }
  friend HWY_INLINE Floats operator*(const Floats& a, const Floats& b) { return hn::Mul(a.raw, b.raw); }
  // a * b + c, rounded once where the machine can.
  friend HWY_INLINE Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return hn::MulAdd(a.raw, b.raw, c.raw);
  }
  // a > b ? a : b, so that a NaN in b stays. x86's own instruction does that.
  friend HWY_INLINE Floats larger(const Floats& a, const Floats& b) {
    if constexpr (kHasX86Vectors) return hn::Max(a.raw, b.raw);
    return hn::IfThenElse(hn::Gt(a.raw, b.raw), a.raw, b.raw);
  }
  // a < b ? a : b.
  friend HWY_INLINE Floats smaller(const Floats& a, const Floats& b) {
    if constexpr (kHasX86Vectors) return hn::Min(a.raw, b.raw);
    return hn::IfThenElse(hn::Lt(a.raw, b.raw), a.raw, b.raw);
  }
  // 0 for numbers. Not by Ne(x, x), which is false in Highway 1.0.3.
  friend HWY_INLINE Floats only_nan(const Floats& x) { return hn::IfThenElseZero(hn::IsNaN(x.raw), x.raw); }
};

// The vector in which sums are formed. Their order, and so their last digits, depends on its width: without AVX that is AVX's.
constexpr int kLanes = HWY_ARCH_X86 && kNative < 8 ? 8 : kNative;
constexpr int64_t kWidth = kLanes;
using Vec = Floats<kLanes>;

// The first `count` floats, less than kWidth, and zeros; nothing behind them is read or written.
HWY_INLINE Vec load_first(const float* x, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::MaskedLoad(hn::FirstN(Vec::D(), static_cast<size_t>(count)), Vec::D(), x);
#else
  float lanes[kWidth] = {};
  memcpy(lanes, x, static_cast<size_t>(count) * sizeof(float));
  return Vec::load(lanes);
#endif
}

HWY_INLINE void store_first(const Vec& x, float* to, int64_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(x.raw, hn::FirstN(Vec::D(), static_cast<size_t>(count)), Vec::D(), to);
#else
  float lanes[kWidth];
  x.store(lanes);
  memcpy(to, lanes, static_cast<size_t>(count) * sizeof(float));
#endif
}

struct Sum {
  template <typename T>
  HWY_INLINE T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

struct Larger {
  template <typename T>
  HWY_INLINE T operator()(const T& a, const T& b) const {
    return larger(a, b);
  }
  HWY_INLINE float operator()(float a, float b) const { return a > b ? a : b; }
};

// All of a vector combined to one number, always in the same order: halves, then theirs.
template <typename Combine = Sum>
HWY_INLINE float fold(const Floats<4>& x, Combine combine = {}) {
  const Floats<4> two = combine(x, Floats<4>(hn::Shuffle1032(x.raw)));
  return combine(hn::GetLane(two.raw), hn::GetLane(hn::Shuffle2301(two.raw)));
}

template <int kCount, typename Combine = Sum>
HWY_INLINE float fold(const Floats<kCount>& x, Combine combine = {}) {
  return fold(combine(x.low(), x.high()), combine);
}

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();
#endif
