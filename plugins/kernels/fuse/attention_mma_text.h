// The bodies of the attention kernels on tensor cores, for four warps of 32 threads. Each warp has kTall times 16 rows of a
// tile's scores to itself, in registers, as `mma` lays them out (tensor_cores.cpp): a lane has two elements of two rows out of
// every 8 columns. So the weights of one product are the left side of the next as they stand. Tiles of the other side are copied
// to shared memory while the warps compute. attention_text.h lists the text before them; besides there are kMasked, kTall, and
// kByKey, whether keys are the rows of the scores, and the functions of one type's fragments (attention_fragments_text.h).
#pragma once

namespace ltc::kernels {

inline constexpr const char* kMmaCommon = R"c(
  // Begins to copy rows [first, first + count) of a matrix of `all` rows, `stride` apart, into a tile, zeros beyond it.
  const auto copy_ahead = [&](Element* tile, const Element* from, i64 stride, i64 first, i32 count, i64 all, i32 width) {
    constexpr i32 kAtOnce = 16 / (i32)sizeof(Element);
    typedef ltc_pack<Element, kAtOnce> Pack;
    for (i32 i = thread; i < count * (width / kAtOnce); i += 128) {
      const i32 row = i / (width / kAtOnce), column = i % (width / kAtOnce) * kAtOnce;
      const bool inside = first + row < all;
      const Element* source = inside ? from + (first + row) * stride + column : from;
      ltc_copy_ahead((Pack*)(tile + row * (width + kPad) + column), (const Pack*)source, inside);
    }
  };
  // Rows [first, first + 16 kTall) of a matrix of `all` rows as left sides.
  const auto load_left = [&](auto& to, const Element* from, i64 stride, i64 first, i64 all) {
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      #pragma unroll
      for (i32 s = 0; s < (i32)(sizeof(to[0]) / sizeof(to[0][0])); ++s) {
        #pragma unroll
        for (i32 i = 0; i < kParts; ++i) {
          const i64 row = first + 16 * m + own_row + i % 2 * 8;
          to[m][s][i] = row < all ? *(const Part*)(from + row * stride + 16 * s + part_column + i / 2 * kNextPart) : (Part)0;
        }
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
  // Rows [first, first + 16 kTall) of a result.
  const auto store = [&](Element* to, i64 stride, const auto& sums, const f32 (&factors)[kTall][2], i64 first, i64 all) {
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      #pragma unroll
      for (i32 r = 0; r < 2; ++r) {
        const i64 row = first + 16 * m + own_row + 8 * r;
        if (row >= all) continue;
        #pragma unroll
        for (i32 n = 0; n < (i32)(sizeof(sums[0]) / sizeof(sums[0][0])); ++n) {
          const f32 f = factors[m][r];
          store_two(to + row * stride + 8 * n + own_column, sums[m][n][2 * r] * f, sums[m][n][2 * r + 1] * f);
        }
      }
    }
  };
  // Over the four lanes that share a row.
  const auto row_sum = [](f32 sum) {
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
  };
  const auto weight_of = [&](f32 score, f32 log) {
    return log == -INFINITY || score == -INFINITY ? 0.0f : power(score - log);
  };
  (void)row_sum, (void)weight_of, (void)product_of_rows, (void)widen, (void)narrow;
)c";

inline constexpr const char* kMmaForward = R"c(
  alignas(16) __shared__ Element keys[kColumns * kPitch];
  alignas(16) __shared__ Element values[kColumns * kValuePitch];
  const i64 tiles = (rows + kRows - 1) / kRows, pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kRows;
  const i64 batch = pair / heads, head = pair % heads, key_head = head / (heads / key_heads);
  const i64 mine = first + 16 * kTall * warp, end = kCausal && first + kRows < columns ? first + kRows : columns;
  copy_ahead(keys, at_k(batch, key_head), k_row, 0, kColumns, columns, kWidth);
  Part queries[kTall][kSteps][kParts];
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
    for (i32 n = 0; n < kColumns; n += kChunk) add_by_rows(s, n / 8, queries, keys + n * kPitch, kPitch);
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
      Part weights[kTall][kParts];
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
  alignas(16) __shared__ Element keys[2][kColumns * kPitch];
  alignas(16) __shared__ Element values[2][kColumns * kValuePitch];
  const i64 tiles = (rows + kRows - 1) / kRows, pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kRows;
  const i64 batch = pair / heads, head = pair % heads, key_head = head / (heads / key_heads);
  const i64 mine = first + 16 * kTall * warp, end = kCausal && first + kRows < columns ? first + kRows : columns;
  const auto copy_keys = [&](i32 slot, i64 key) {
    copy_ahead(keys[slot], at_k(batch, key_head), k_row, key, kColumns, columns, kWidth);
    copy_ahead(values[slot], at_v(batch, key_head), v_row, key, kColumns, columns, kValueWidth);
  };
  copy_keys(0, 0);
  Part queries[kTall][kSteps][kParts], gradients[kTall][kValueSteps][kParts], outputs[kTall][kValueSteps][kParts];
  load_left(queries, at_q(batch, head), q_row, mine, rows);
  load_left(gradients, at_g(batch, head), g_row, mine, rows);
  load_left(outputs, at_out(batch, head), out_row, mine, rows);
  f32 inner[kTall][2], log[kTall][2], factors[kTall][2], result[kTall][kWidth / 8][4] = {};
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) {
    #pragma unroll
    for (i32 r = 0; r < 2; ++r) {
      const i64 row = mine + 16 * m + own_row + 8 * r;
      inner[m][r] = row_sum(product_of_rows(gradients[m], outputs[m], r));
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
    for (i32 n = 0; n < kColumns; n += kChunk) {
      f32 s[kTall][kChunk / 8][4] = {}, d[kTall][kChunk / 8][4] = {};
      add_by_rows(s, 0, queries, keys[slot] + n * kPitch, kPitch);
      add_by_rows(d, 0, gradients, values[slot] + n * kValuePitch, kValuePitch);
      scale_and_mask(s, batch, head, mine, key + n, whole);
      #pragma unroll
      for (i32 i = 0; i < kTall * kChunk / 2; ++i) {
        const i32 m = i / (kChunk / 2), r = i / 2 % 2;
        f32& score = d[m][i / 4 % (kChunk / 8)][i % 4];
        score = weight_of(s[m][i / 4 % (kChunk / 8)][i % 4], log[m][r]) * (score - inner[m][r]);
      }
      #pragma unroll
      for (i32 c = 0; c < kChunk / 16; ++c) {
        Part scores[kTall][kParts];
        #pragma unroll
        for (i32 m = 0; m < kTall; ++m) as_left(scores[m], d[m][2 * c], d[m][2 * c + 1]);
        add_weighted(result, scores, keys[slot] + (n + 16 * c) * kPitch, kPitch);
      }
    }
  }
  store(at_dq(batch, head), dq_row, result, factors, mine, rows);
)c";

// A block per tile of keys, over all queries of the heads that share them; keys are the rows of its scores.
inline constexpr const char* kMmaKeyGradient = R"c(
  alignas(16) __shared__ Element queries[2][kRows * kPitch];
  alignas(16) __shared__ Element gradients[2][kRows * kValuePitch];
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
  Part keys[1][kSteps][kParts], values[1][kValueSteps][kParts];
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
      for (i32 n = 0; n < kRows; n += kChunk) {
        f32 s[1][kChunk / 8][4] = {}, d[1][kChunk / 8][4] = {};
        add_by_rows(s, 0, keys, queries[slot] + n * kPitch, kPitch);
        add_by_rows(d, 0, values, gradients[slot] + n * kValuePitch, kValuePitch);
        scale_and_mask(s, batch, head, mine, query + n, whole);
        #pragma unroll
        for (i32 i = 0; i < kChunk / 2; ++i) {
          const i32 row = n + i / 4 * 8 + own_column + i % 2;
          const f32 weight = weight_of(s[0][i / 4][i % 4], query_logs[slot][row]);
          s[0][i / 4][i % 4] = weight;
          d[0][i / 4][i % 4] = weight * (d[0][i / 4][i % 4] - query_sums[slot][row]);
        }
        #pragma unroll
        for (i32 c = 0; c < kChunk / 16; ++c) {
          Part weights[1][kParts], scores[1][kParts];
          as_left(weights[0], s[0][2 * c], s[0][2 * c + 1]);
          as_left(scores[0], d[0][2 * c], d[0][2 * c + 1]);
          add_weighted(of_value, weights, gradients[slot] + (n + 16 * c) * kValuePitch, kValuePitch);
          add_weighted(of_key, scores, queries[slot] + (n + 16 * c) * kPitch, kPitch);
        }
      }
    }
  }
  store(at_dk(batch, key_head), dk_row, of_key, {{scale, scale}}, mine, columns);
  store(at_dv(batch, key_head), dv_row, of_value, {{1.0f, 1.0f}}, mine, columns);
)c";

}  // namespace ltc::kernels
