#include "cpu_kernels/philox.h"

#include "cpu_kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_kernels/philox.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <string.h>

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<uint32_t>;
using Lanes = hn::ScalableTag<uint64_t>;
using U64 = hn::Vec<Lanes>;

constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Lanes()));
constexpr int kGroups = 8;  // independent vectors in flight, to hide the latency of the multiplication

// Low halves of lanes multiplied into whole lanes.
HWY_INLINE U64 multiply(U64 a, uint32_t b) { return hn::MulEven(hn::BitCast(Words(), a), hn::Set(Words(), b)); }

HWY_INLINE void put(uint32_t* out, U64 x) { hn::StoreU(hn::BitCast(Words(), x), Words(), out); }
HWY_INLINE void put(uint64_t* out, U64 x) { hn::StoreU(x, Lanes(), out); }

HWY_INLINE void put(float* out, U64 x) {
  const hn::RebindToFloat<Words> floats;
  const auto words = hn::BitCast(hn::RebindToSigned<Words>(), hn::ShiftRight<8>(hn::BitCast(Words(), x)));
  hn::StoreU(hn::Mul(hn::ConvertTo(floats, words), hn::Set(floats, 0x1p-24f)), floats, out);
}

// Both halves become doubles by planting them in the mantissas of 2^84 and 2^52: exact, and without AVX-512 the only way.
HWY_INLINE void put(double* out, U64 x) {
  const hn::RebindToFloat<Lanes> doubles;
  const Lanes lanes;
  const U64 bits = hn::ShiftRight<11>(x);
  const U64 above = hn::Or(hn::ShiftRight<32>(bits), hn::Set(lanes, 0x4530000000000000u));
  const U64 below = hn::Or(hn::And(bits, hn::Set(lanes, 0xffffffffu)), hn::Set(lanes, 0x4330000000000000u));
  const auto high = hn::Sub(hn::BitCast(doubles, above), hn::Set(doubles, 0x1p84 + 0x1p52));
  hn::StoreU(hn::Mul(hn::Add(high, hn::BitCast(doubles, below)), hn::Set(doubles, 0x1p-53)), doubles, out);
}

// Lane 2j holds block j and lane 2j + 1 block j + kLanes / 2, so that interleaving yields the blocks in order.
HWY_INLINE U64 counters(uint64_t first) {
  uint64_t x[kLanes];
  for (int j = 0; j < kLanes; ++j) x[j] = static_cast<uint64_t>(j / 2 + j % 2 * (kLanes / 2));
  return hn::Add(hn::Set(Lanes(), first), hn::LoadU(Lanes(), x));
}

// kLanes * kGroups blocks from `counter`. Only the low half of a lane is a word; what gathers above it is never read.
template <typename T>
HWY_INLINE void generate(uint64_t seed, uint64_t counter, T* out) {
  const Lanes lanes;
  U64 a[kGroups], b[kGroups], c[kGroups], d[kGroups];
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g) {
    a[g] = counters(counter + static_cast<uint64_t>(g * kLanes));
    b[g] = hn::ShiftRight<32>(a[g]);
    c[g] = d[g] = hn::Zero(lanes);
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    const U64 first = hn::Set(lanes, key0), second = hn::Set(lanes, key1);
#pragma GCC unroll 8
    for (int g = 0; g < kGroups; ++g) {
      const U64 p0 = multiply(a[g], kMultiplier0), p1 = multiply(c[g], kMultiplier1);
      a[g] = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), b[g]), first);
      b[g] = p1;
      c[g] = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), d[g]), second);
      d[g] = p0;
    }
  }
  const U64 word = hn::Set(lanes, 0xffffffffu);
#pragma GCC unroll 8
  for (int g = 0; g < kGroups; ++g, out += 16 / sizeof(T) * kLanes) {
    const U64 low = hn::Or(hn::And(a[g], word), hn::ShiftLeft<32>(b[g]));
    const U64 high = hn::Or(hn::And(c[g], word), hn::ShiftLeft<32>(d[g]));
    put(out, hn::InterleaveLower(lanes, low, high));
    put(out + 8 / sizeof(T) * kLanes, hn::InterleaveUpper(lanes, low, high));
  }
}

template <typename T>
HWY_INLINE void fill(const Philox& philox, T* out, int64_t first, int64_t last) {
  constexpr int64_t kPerBlock = 16 / sizeof(T), kPerStep = kLanes * kGroups * kPerBlock;
  uint64_t counter = philox.offset + static_cast<uint64_t>(first / kPerBlock);
  int64_t left = last - first;
  for (; left >= kPerStep; left -= kPerStep, out += kPerStep, counter += kLanes * kGroups) generate(philox.seed, counter, out);
  if (left == 0) return;
  T rest[kPerStep];
  generate(philox.seed, counter, rest);
  memcpy(out, rest, static_cast<size_t>(left) * sizeof(T));
}

void fill_floats(const Philox& philox, float* out, int64_t first, int64_t last) { fill(philox, out, first, last); }
void fill_doubles(const Philox& philox, double* out, int64_t first, int64_t last) { fill(philox, out, first, last); }
void fill_words(const Philox& philox, uint32_t* out, int64_t first, int64_t last) { fill(philox, out, first, last); }
void fill_pairs(const Philox& philox, uint64_t* out, int64_t first, int64_t last) { fill(philox, out, first, last); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ltc::cpu {

void Philox::uniform(float* out, int64_t first, int64_t last) const { LTC_CHOSEN(fill_floats)(*this, out, first, last); }
void Philox::uniform(double* out, int64_t first, int64_t last) const { LTC_CHOSEN(fill_doubles)(*this, out, first, last); }
void Philox::bits(int32_t* out, int64_t first, int64_t last) const {
  LTC_CHOSEN(fill_words)(*this, reinterpret_cast<uint32_t*>(out), first, last);
}
void Philox::bits(int64_t* out, int64_t first, int64_t last) const {
  LTC_CHOSEN(fill_pairs)(*this, reinterpret_cast<uint64_t*>(out), first, last);
}

}  // namespace ltc::cpu
#endif
