// Transposed tiles of matrices, compiled once per target.
#if defined(LTC_CPU_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LTC_CPU_KERNELS_TRANSPOSE_INL_H_
#undef LTC_CPU_KERNELS_TRANSPOSE_INL_H_
#else
#define LTC_CPU_KERNELS_TRANSPOSE_INL_H_
#endif

#include "cpu_kernels/floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {

constexpr int kSide = kNative < 8 ? 4 : 8;  // of a tile

// Rows and columns of kSide elements; rows lie `stride` elements apart.
HWY_INLINE void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  using Row = Floats<kSide>;
  const Row::D d;
  const hn::Repartition<double, Row::D> pairs;
  Row a[kSide], b[kSide];
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i) a[i] = Row::load(from + i * from_stride);
#pragma GCC unroll 4
  for (int i = 0; i < kSide; i += 2) {
    b[i] = hn::InterleaveLower(d, a[i].raw, a[i + 1].raw);
    b[i + 1] = hn::InterleaveUpper(d, a[i].raw, a[i + 1].raw);
  }
#pragma GCC unroll 2
  for (int i = 0; i < kSide; i += 4) {
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const auto first = hn::BitCast(pairs, b[i + k].raw), second = hn::BitCast(pairs, b[i + 2 + k].raw);
      a[i + 2 * k] = hn::BitCast(d, hn::InterleaveLower(pairs, first, second));
      a[i + 2 * k + 1] = hn::BitCast(d, hn::InterleaveUpper(pairs, first, second));
    }
  }
  if constexpr (kSide == 8) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      b[i] = hn::ConcatLowerLower(d, a[i + 4].raw, a[i].raw);
      b[i + 4] = hn::ConcatUpperUpper(d, a[i + 4].raw, a[i].raw);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kSide; ++i) (kSide == 8 ? b : a)[i].store(to + i * to_stride);
}

}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();
#endif
