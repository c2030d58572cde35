// The bodies of the attention kernels of halves on tensor cores, for four warps of 32 threads. Each warp has kTall times 16 rows
// of a tile's scores to itself, in registers, as `mma` lays them out (tensor_cores.cpp): a lane has two elements of two rows out
// of every 8 columns. So the weights of one product are the left side of the next as they stand. Tiles of the other side are
// copied to shared memory while the warps compute, in rows 16 bytes longer than needed: eight that lie below each other are read
// without a conflict of banks. attention_text.h lists the text before them; besides there are kBf16, kMasked, kTall, and
// kByKey, whether keys are the rows of the scores.
#pragma once

namespace ltc::kernels {

inline constexpr const char* kMmaCommon = R"c(
  constexpr i32 kPitch = kWidth + 8, kValuePitch = kValueWidth + 8, kSteps = kWidth / 16, kValueSteps = kValueWidth / 16;
  const i32 thread = (i32)threadIdx.x, lane = thread % 32, warp = thread / 32;
  const i32 own_row = lane / 4, own_column = lane % 4 * 2;  // the first of a lane's elements in sums of 16 x 8
  // Begins to copy rows [first, first + count) of a matrix of `all` rows, `stride` apart, into a tile, zeros beyond it.
  const auto copy_ahead = [&](u16* tile, const u16* from, i64 stride, i64 first, i32 count, i64 all, i32 width) {
    typedef ltc_pack<u16, 8> Pack;
    for (i32 i = thread; i < count * (width / 8); i += 128) {
      const i32 row = i / (width / 8), column = i % (width / 8) * 8;
      const bool inside = first + row < all;
      ltc_copy_ahead((Pack*)(tile + row * (width + 8) + column), (const Pack*)(inside ? from + (first + row) * stride + column : from),
                     inside);
    }
  };
  // Rows [first, first + 16 kTall) as left sides of products, from memory.
  const auto load_left = [&](auto& to, const u16* from, i64 stride, i64 first, i64 all) {
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      #pragma unroll
      for (i32 s = 0; s < (i32)(sizeof(to[0]) / sizeof(to[0][0])); ++s) {
        #pragma unroll
        for (i32 i = 0; i < 4; ++i) {
          const i64 row = first + 16 * m + own_row + i % 2 * 8;
          to[m][s][i] = row < all ? *(const u32*)(from + row * stride + 16 * s + own_column + i / 2 * 8) : 0u;
        }
      }
    }
  };
  // sums[m][n], sums[m][n + 1] += a[m] times 16 rows of a tile, which stand as columns.
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
  // sums[m] += weights[m] times 16 rows of a tile.
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
  // Scores of the warp's rows, of which `mine` is the first, and of columns from `other` on; whole: none is masked.
  const auto scale_and_mask = [&](auto& s, i64 batch, i64 head, i64 mine, i64 other, bool whole) {
    constexpr i32 kAll = (i32)(sizeof(s[0]) / sizeof(f32));
    #pragma unroll
    for (i32 i = 0; i < kTall * kAll; ++i) s[i / kAll][i % kAll / 4][i % 4] *= scale;
    if (whole) return;
    #pragma unroll
    for (i32 i = 0; i < kTall * kAll; ++i) {
      const i64 across = mine + i / kAll * 16 + own_row + i / 2 % 2 * 8, along = other + i % kAll / 4 * 8 + own_column + i % 2;
      f32& score = s[i / kAll][i % kAll / 4][i % 4];
      score = masked(score, batch, head, kByKey ? along : across, kByKey ? across : along);
    }
    __syncwarp();  // lanes may part at a mask, and a product wants them together
  };
  // 16 x 16 of scores as the left side of a product.
  const auto as_left = [](u32 (&to)[4], const f32 (&low)[4], const f32 (&high)[4]) {
    to[0] = ltc_two_halves<kBf16>(low[0], low[1]);
    to[1] = ltc_two_halves<kBf16>(low[2], low[3]);
    to[2] = ltc_two_halves<kBf16>(high[0], high[1]);
    to[3] = ltc_two_halves<kBf16>(high[2], high[3]);
  };
  // Rows [first, first + 16 kTall) of a result.
  const auto store = [&](u16* to, i64 stride, const auto& sums, const f32 (&factors)[kTall][2], i64 first, i64 all) {
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      #pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i64 row = first + 16 * m + own_row + 8 * r;
        if (row >= all) continue;
        #pragma unroll
        for (i32 n = 0; n < (i32)(sizeof(sums[0]) / sizeof(sums[0][0])); ++n) {
          const f32 f = factors[m][r];
          *(u32*)(to + row * stride + 8 * n + own_column) = ltc_two_halves<kBf16>(sums[m][n][2 * r] * f, sums[m][n][2 * r + 1] * f);
        }
      }
    }
  };
  // Over the four lanes that share a row.
  const auto row_sum = [](f32 sum) {
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
  };
  const auto power = [](f32 x) { return exp2f(x * 1.44269504f); };  // of e; weights become halves
  const auto weight_of = [&](f32 score, f32 log) {
    return log == -INFINITY || score == -INFINITY ? 0.0f : power(score - log);
  };
  (void)row_sum, (void)weight_of, (void)widen, (void)narrow;
)c";

inline constexpr const char* kMmaForward = R"c(
  alignas(16) __shared__ u16 keys[kColumns * kPitch];
  alignas(16) __shared__ u16 values[kColumns * kValuePitch];
  const i64 tiles = (rows + kRows - 1) / kRows, pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kRows;
  const i64 batch = pair / heads, head = pair % heads, key_head = head / (heads / key_heads);
  const i64 mine = first + 16 * kTall * warp, end = kCausal && first + kRows < columns ? first + kRows : columns;
  copy_ahead(keys, at_k(batch, key_head), k_row, 0, kColumns, columns, kWidth);
  u32 queries[kTall][kSteps][4];
  load_left(queries, at_q(batch, head), q_row, mine, rows);
  f32 sums[kTall][kValueWidth / 8][4] = {}, peak[kTall][2], total[kTall][2] = {};
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) peak[m][0] = peak[m][1] = -INFINITY;
  for (i64 key = 0; key < end; key += kColumns) {
    ltc_await_copies();
    __syncthreads();
    copy_ahead(values, at_v(batch, key_head), v_row, key, kColumns, columns, kValueWidth);
    f32 s[kTall][kColumns / 8][4] = {};
    #pragma unroll
    for (i32 n = 0; n < kColumns / 8; n += 2) add_by_rows(s, n, queries, keys + 8 * n * kPitch, kPitch);
    const bool whole = !kMasked && key + kColumns <= columns && (!kCausal || key + kColumns <= mine + 1);
    scale_and_mask(s, batch, head, mine, key, whole);
    ltc_await_copies();
    __syncthreads();
    if (key + kColumns < end) copy_ahead(keys, at_k(batch, key_head), k_row, key + kColumns, kColumns, columns, kWidth);
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      #pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        f32 best = peak[m][r], sum = 0;
        #pragma unroll
        for (i32 i = 0; i < kColumns / 4; ++i) {
          const f32 score = s[m][i / 2][2 * r + i % 2];
          best = score > best || score != score ? score : best;
        }
        #pragma unroll
        for (i32 step = 1; step < 4; step *= 2) {
          const f32 other = __shfl_xor_sync(0xffffffffu, best, step);
          best = other > best || other != other ? other : best;
        }
        const f32 shift = best == -INFINITY ? 0.0f : best, fade = power(peak[m][r] - shift);
        #pragma unroll
        for (i32 i = 0; i < kColumns / 4; ++i) {
          f32& score = s[m][i / 2][2 * r + i % 2];
          score = power(score - shift);
          sum += score;
        }
        total[m][r] = total[m][r] * fade + sum;
        peak[m][r] = best;
        #pragma unroll
        for (i32 n = 0; n < kValueWidth / 8; ++n) sums[m][n][2 * r] *= fade, sums[m][n][2 * r + 1] *= fade;
      }
    }
    #pragma unroll
    for (i32 n = 0; n < kColumns / 8; n += 2) {
      u32 weights[kTall][4];
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) as_left(weights[m], s[m][n], s[m][n + 1]);
      add_weighted(sums, weights, values + 8 * n * kValuePitch, kValuePitch);
    }
  }
  f32 factors[kTall][2];
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) {
    #pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i64 row = mine + 16 * m + own_row + 8 * r;
      const f32 all = row_sum(total[m][r]);
      factors[m][r] = all == 0 ? 1.0f : 1.0f / all;
      if (row < rows && lane % 4 == 0) logs[pair * rows + row] = (peak[m][r] == -INFINITY ? 0.0f : peak[m][r]) + logf(all);
    }
  }
  store(at_out(batch, head), out_row, sums, factors, mine, rows);
)c";

// A block per tile of rows; what it needs of its rows' gradients and outputs, their inner products, is left for the other kernel.
inline constexpr const char* kMmaQueryGradient = R"c(
  alignas(16) __shared__ u16 keys[2][kColumns * kPitch];
  alignas(16) __shared__ u16 values[2][kColumns * kValuePitch];
  const i64 tiles = (rows + kRows - 1) / kRows, pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kRows;
  const i64 batch = pair / heads, head = pair % heads, key_head = head / (heads / key_heads);
  const i64 mine = first + 16 * kTall * warp, end = kCausal && first + kRows < columns ? first + kRows : columns;
  const auto copy_keys = [&](i32 slot, i64 key) {
    copy_ahead(keys[slot], at_k(batch, key_head), k_row, key, kColumns, columns, kWidth);
    copy_ahead(values[slot], at_v(batch, key_head), v_row, key, kColumns, columns, kValueWidth);
  };
  copy_keys(0, 0);
  u32 queries[kTall][kSteps][4], gradients[kTall][kValueSteps][4], outputs[kTall][kValueSteps][4];
  load_left(queries, at_q(batch, head), q_row, mine, rows);
  load_left(gradients, at_g(batch, head), g_row, mine, rows);
  load_left(outputs, at_out(batch, head), out_row, mine, rows);
  f32 inner[kTall][2], log[kTall][2], factors[kTall][2], result[kTall][kWidth / 8][4] = {};
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) {
    #pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      f32 sum = 0;
      #pragma unroll
      for (i32 i = 0; i < 2 * kValueSteps; ++i) {
        const u32 a = gradients[m][i / 2][r + i % 2 * 2], b = outputs[m][i / 2][r + i % 2 * 2];
        sum = fmaf(widen((u16)(a >> 16)), widen((u16)(b >> 16)), fmaf(widen((u16)a), widen((u16)b), sum));
      }
      const i64 row = mine + 16 * m + own_row + 8 * r;
      inner[m][r] = row_sum(sum);
      log[m][r] = row < rows ? logs[pair * rows + row] : -INFINITY;
      factors[m][r] = scale;
      if (row < rows && lane % 4 == 0) sums[pair * rows + row] = inner[m][r];
    }
  }
  i32 slot = 0;
  for (i64 key = 0; key < end; key += kColumns, slot ^= 1) {
    ltc_await_copies();
    __syncthreads();
    if (key + kColumns < end) copy_keys(slot ^ 1, key + kColumns);
    const bool whole = !kMasked && key + kColumns <= columns && (!kCausal || key + kColumns <= mine + 1);
    for (i32 n = 0; n < kColumns; n += 16) {
      f32 s[kTall][2][4] = {}, d[kTall][2][4] = {};
      add_by_rows(s, 0, queries, keys[slot] + n * kPitch, kPitch);
      add_by_rows(d, 0, gradients, values[slot] + n * kValuePitch, kValuePitch);
      scale_and_mask(s, batch, head, mine, key + n, whole);
      u32 scores[kTall][4];
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        #pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const i32 r = i / 2 % 2;
          d[m][i / 4][i % 4] = weight_of(s[m][i / 4][i % 4], log[m][r]) * (d[m][i / 4][i % 4] - inner[m][r]);
        }
        as_left(scores[m], d[m][0], d[m][1]);
      }
      add_weighted(result, scores, keys[slot] + n * kPitch, kPitch);
    }
  }
  store(at_dq(batch, head), dq_row, result, factors, mine, rows);
)c";

// A block per tile of keys, over all queries of the heads that share them; keys are the rows of its scores.
inline constexpr const char* kMmaKeyGradient = R"c(
  alignas(16) __shared__ u16 queries[2][kRows * kPitch];
  alignas(16) __shared__ u16 gradients[2][kRows * kValuePitch];
  __shared__ f32 query_logs[2][kRows], query_sums[2][kRows];
  const i64 tiles = (columns + kColumns - 1) / kColumns, key_pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kColumns;
  const i64 batch = key_pair / key_heads, key_head = key_pair % key_heads, sharing = heads / key_heads;
  const i64 mine = first + 16 * warp, begin = kCausal ? first / kRows * kRows : 0;
  const auto copy_queries = [&](i32 slot, i64 head, i64 query) {
    copy_ahead(queries[slot], at_q(batch, head), q_row, query, kRows, rows, kWidth);
    copy_ahead(gradients[slot], at_g(batch, head), g_row, query, kRows, rows, kValueWidth);
    if (thread >= kRows) return;
    const bool inside = query + thread < rows;
    const i64 row = (batch * heads + head) * rows + (inside ? query + thread : 0);
    ltc_copy_ahead(query_logs[slot] + thread, logs + row, inside);
    ltc_copy_ahead(query_sums[slot] + thread, sums + row, inside);
  };
  u32 keys[1][kSteps][4], values[1][kValueSteps][4];
  load_left(keys, at_k(batch, key_head), k_row, mine, columns);
  load_left(values, at_v(batch, key_head), v_row, mine, columns);
  f32 of_key[1][kWidth / 8][4] = {}, of_value[1][kValueWidth / 8][4] = {};
  i32 slot = 0;
  for (i64 head = key_head * sharing; head < (key_head + 1) * sharing; ++head) {
    if (begin < rows) copy_queries(slot, head, begin);
    for (i64 query = begin; query < rows; query += kRows, slot ^= 1) {
      ltc_await_copies();
      __syncthreads();
      if (query + kRows < rows) copy_queries(slot ^ 1, head, query + kRows);
      const bool whole = !kMasked && query + kRows <= rows && mine + 16 <= columns && (!kCausal || mine + 15 <= query);
      for (i32 n = 0; n < kRows; n += 16) {
        f32 s[1][2][4] = {}, d[1][2][4] = {};
        add_by_rows(s, 0, keys, queries[slot] + n * kPitch, kPitch);
        add_by_rows(d, 0, values, gradients[slot] + n * kValuePitch, kValuePitch);
        scale_and_mask(s, batch, head, mine, query + n, whole);
        #pragma unroll
        for (i32 i = 0; i < 8; ++i) {
          const i32 row = n + i / 4 * 8 + own_column + i % 2;
          const f32 weight = weight_of(s[0][i / 4][i % 4], query_logs[slot][row]);
          s[0][i / 4][i % 4] = weight;
          d[0][i / 4][i % 4] = weight * (d[0][i / 4][i % 4] - query_sums[slot][row]);
        }
        u32 weights[1][4], scores[1][4];
        as_left(weights[0], s[0][0], s[0][1]);
        as_left(scores[0], d[0][0], d[0][1]);
        add_weighted(of_value, weights, gradients[slot] + n * kValuePitch, kValuePitch);
        add_weighted(of_key, scores, queries[slot] + n * kPitch, kPitch);
      }
    }
  }
  store(at_dk(batch, key_head), dk_row, of_key, {{scale, scale}}, mine, columns);
  store(at_dv(batch, key_head), dv_row, of_value, {{1.0f, 1.0f}}, mine, columns);
)c";

}  // namespace ltc::kernels
