// How a warp holds elements of one type for `mma` (tensor_cores.cpp): text for the kernels of attention_mma_text.h, which gets
// from it
//   Element, Part      an element in memory; what a register of a left side holds
//   kParts             registers of a lane for a left side of 16 x 16
//   kChunk             columns of scores that the gradients compute at once
//   kPad               elements between the rows of a tile: so many that the lanes of a load meet no bank twice
//   part_column        column of a lane's first part of a left side, of which the next ones are kNextPart columns apart
// and functions. `sums` are 16 x 8 for each [m][n], a left side 16 x 16 for each [m][s], a tile is in shared memory.
//   add_by_rows        sums[m][n + i] += a[m] times rows [8 i, 8 i + 8) of a tile, which stand as columns, for a chunk
//   add_weighted       sums[m] += weights[m] times 16 rows of a tile
//   as_left            16 x 16 of sums as a left side
//   product_of_rows    a lane's share of the inner product of two rows of left sides: the upper one, or the lower
//   store_two, power   two neighbours of a result; of e
#pragma once

namespace ltc::kernels {

// The places of a lane in the fragments of every type.
inline constexpr const char* kMmaLane = R"c(
  const i32 thread = (i32)threadIdx.x, lane = thread % 32, warp = thread / 32;
  const i32 own_row = lane / 4, own_column = lane % 4 * 2;  // the first of a lane's elements in sums of 16 x 8
  constexpr i32 kPitch = kWidth + kPad, kValuePitch = kValueWidth + kPad, kSteps = kWidth / 16, kValueSteps = kValueWidth / 16;
)c";

// Halves: two to a register, products of 16 columns.
inline constexpr const char* kHalfTypes = R"c(
  typedef u16 Element;
  typedef u32 Part;
  constexpr i32 kParts = 4, kChunk = 16, kPad = 8, kNextPart = 8;
)c";

inline constexpr const char* kHalfFragments = R"c(
  const i32 part_column = own_column;
  const auto add_by_rows = [&](auto& sums, i32 n, const auto& a, const u16* tile, i32 pitch) {
    const u16* mine = tile + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8;
    #pragma unroll
    for (i32 s = 0; s < (i32)(sizeof(a[0]) / sizeof(a[0][0])); ++s) {
      u32 b[4];
      ltc_load_matrices(b, mine + 16 * s);
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        ltc_mma<kBf16>(sums[m][n], a[m][s], b[0], b[1]);
        ltc_mma<kBf16>(sums[m][n + 1], a[m][s], b[2], b[3]);
      }
    }
  };
  const auto add_weighted = [&](auto& sums, const u32 (&weights)[kTall][4], const u16* tile, i32 pitch) {
    const u16* mine = tile + lane % 16 * pitch + lane / 16 * 8;
    #pragma unroll
    for (i32 n = 0; n < (i32)(sizeof(sums[0]) / sizeof(sums[0][0])); n += 2) {
      u32 b[4];
      ltc_load_transposed(b, mine + 8 * n);
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        ltc_mma<kBf16>(sums[m][n], weights[m], b[0], b[1]);
        ltc_mma<kBf16>(sums[m][n + 1], weights[m], b[2], b[3]);
      }
    }
  };
  const auto as_left = [](u32 (&to)[4], const f32 (&low)[4], const f32 (&high)[4]) {
    to[0] = ltc_two_halves<kBf16>(low[0], low[1]);
    to[1] = ltc_two_halves<kBf16>(low[2], low[3]);
    to[2] = ltc_two_halves<kBf16>(high[0], high[1]);
    to[3] = ltc_two_halves<kBf16>(high[2], high[3]);
  };
  const auto product_of_rows = [&](const auto& a, const auto& b, i32 lower) {
    f32 sum = 0;
    #pragma unroll
    for (i32 i = 0; i < 2 * (i32)(sizeof(a) / sizeof(a[0])); ++i) {
      const u32 p = a[i / 2][lower + i % 2 * 2], q = b[i / 2][lower + i % 2 * 2];
      sum = fmaf(widen((u16)(p >> 16)), widen((u16)(q >> 16)), fmaf(widen((u16)p), widen((u16)q), sum));
    }
    return sum;
  };
  const auto store_two = [](u16* to, f32 first, f32 second) { *(u32*)to = ltc_two_halves<kBf16>(first, second); };
  const auto power = [](f32 x) { return exp2f(x * 1.44269504f); };  // weights become halves
)c";

// F32: each element is the sum of two of TF32, a large one and what it leaves. Three products of 8 columns, all but that of the
// two small ones, give nearly F32's precision: 3xTF32, as in CUTLASS's OpMultiplyAddFastF32. A sum over keys may run through them
// in any order, so the left side of 8 keys has the even ones first, as the sums have them.
inline constexpr const char* kF32Types = R"c(
  typedef f32 Element;
  typedef f32 Part;
  constexpr i32 kParts = 8, kChunk = 32, kPad = 4, kNextPart = 4;
)c";

inline constexpr const char* kF32Fragments = R"c(
  const i32 part_column = lane % 4;
  struct Left {
    u32 large[4], small[4];
  };
  const auto left_of = [](const f32* parts) {
    Left left;
    #pragma unroll
    for (i32 i = 0; i < 4; ++i) ltc_tf32_parts(parts[i], left.large[i], left.small[i]);
    return left;
  };
  // The small ones first: they would be lost in a large sum.
  const auto add_product = [](f32 (&sums)[4], const Left& a, f32 b0, f32 b1) {
    u32 large[2], small[2];
    ltc_tf32_parts(b0, large[0], small[0]);
    ltc_tf32_parts(b1, large[1], small[1]);
    ltc_tf32_mma(sums, a.small, large[0], large[1]);
    ltc_tf32_mma(sums, a.large, small[0], small[1]);
    ltc_tf32_mma(sums, a.large, large[0], large[1]);
  };
  const auto add_by_rows = [&](auto& sums, i32 n, const auto& a, const f32* tile, i32 pitch) {
    const f32* mine = tile + own_row * pitch + part_column;
    #pragma unroll
    for (i32 s = 0; s < 2 * (i32)(sizeof(a[0]) / sizeof(a[0][0])); ++s) {
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        const Left left = left_of(a[m][s / 2] + s % 2 * 4);
        #pragma unroll
        for (i32 i = 0; i < kChunk / 8; ++i)
          add_product(sums[m][n + i], left, mine[8 * i * pitch + 8 * s], mine[8 * i * pitch + 8 * s + 4]);
      }
    }
  };
  const auto add_weighted = [&](auto& sums, const f32 (&weights)[kTall][8], const f32* tile, i32 pitch) {
    const f32* mine = tile + own_column * pitch + own_row;
    #pragma unroll
    for (i32 s = 0; s < 2; ++s) {
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        const Left left = left_of(weights[m] + 4 * s);
        #pragma unroll
        for (i32 n = 0; n < (i32)(sizeof(sums[0]) / sizeof(sums[0][0])); ++n)
          add_product(sums[m][n], left, mine[8 * s * pitch + 8 * n], mine[(8 * s + 1) * pitch + 8 * n]);
      }
    }
  };
  const auto as_left = [](f32 (&to)[8], const f32 (&low)[4], const f32 (&high)[4]) {
    #pragma unroll
    for (i32 i = 0; i < 4; ++i) to[i] = low[i / 2 + i % 2 * 2], to[4 + i] = high[i / 2 + i % 2 * 2];
  };
  const auto product_of_rows = [](const auto& a, const auto& b, i32 lower) {
    f32 sum = 0;
    #pragma unroll
    for (i32 i = 0; i < 4 * (i32)(sizeof(a) / sizeof(a[0])); ++i)
      sum = fmaf(a[i / 4][lower + i % 4 * 2], b[i / 4][lower + i % 4 * 2], sum);
    return sum;
  };
  const auto store_two = [](f32* to, f32 first, f32 second) { *(ltc_pack<f32, 2>*)to = {{first, second}}; };
  const auto power = [](f32 x) { return expf(x); };
)c";

}  // namespace ltc::kernels
