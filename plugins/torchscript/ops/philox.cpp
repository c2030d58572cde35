#include "torchscript/ops/philox.h"

#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ltc::torchscript {
namespace {

constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#define LTC_PHILOX_SET avx512
#define LTC_PHILOX_LANES 8
#define LTC_PHILOX_MULTIPLY(a, b) (U64) _mm512_maskz_mul_epu32(0xff, (__m512i)(a), (__m512i)(b))
#include "torchscript/ops/philox_kernel.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2")
#define LTC_PHILOX_SET avx2
#define LTC_PHILOX_LANES 4
#define LTC_PHILOX_MULTIPLY(a, b) (U64) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#include "torchscript/ops/philox_kernel.inc"
#pragma GCC pop_options

#endif

#define LTC_PHILOX_SET baseline
#define LTC_PHILOX_LANES 2
#if defined(__x86_64__)
#define LTC_PHILOX_MULTIPLY(a, b) (U64) _mm_mul_epu32((__m128i)(a), (__m128i)(b))
#else
#define LTC_PHILOX_MULTIPLY(a, b) ((a)&0xffffffffu) * (b)
#endif
#include "torchscript/ops/philox_kernel.inc"

template <typename T>
void fill_fastest(const Philox& philox, T* out, int64_t first, int64_t last) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx512) return avx512::fill(philox, out, first, last);
  if (has_avx2) return avx2::fill(philox, out, first, last);
#endif
  baseline::fill(philox, out, first, last);
}

}  // namespace

void Philox::uniform(float* out, int64_t first, int64_t last) const { fill_fastest(*this, out, first, last); }
void Philox::uniform(double* out, int64_t first, int64_t last) const { fill_fastest(*this, out, first, last); }
void Philox::bits(int32_t* out, int64_t first, int64_t last) const {
  fill_fastest(*this, reinterpret_cast<uint32_t*>(out), first, last);
}
void Philox::bits(int64_t* out, int64_t first, int64_t last) const {
  fill_fastest(*this, reinterpret_cast<uint64_t*>(out), first, last);
}

}  // namespace ltc::torchscript
