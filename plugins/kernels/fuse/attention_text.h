// The bodies of the attention kernels, for 128 threads: 16 groups of 8, each group a few rows of a tile, each thread every eighth
// column. The text before them has the constants kRows, kColumns, kWidth, kValueWidth, kCausal, scale; widen and narrow between
// elements and f32; at_q(batch, head) and the like, the places of matrices; masked(score, ...).
#pragma once

namespace ltc::kernels {

inline constexpr const char* kAttentionCommon = R"c(
  const i32 thread = (i32)threadIdx.x, x = thread % 8, y = thread / 8;
  // Rows of a tile in shared memory are read four elements at once, from eight rows without a conflict of banks.
  constexpr i32 kDepth = (kWidth + 3) / 4 * 4, kPitch = kDepth + 4;
  constexpr i32 kValueDepth = (kValueWidth + 3) / 4 * 4, kValuePitch = kValueDepth + 4;
  constexpr i32 kTall = kRows / 16, kWide = kColumns / 8, kTallKeys = kColumns / 16, kWideRows = kRows / 8;
  constexpr i32 kEighth = (kWidth + 7) / 8, kValueEighth = (kValueWidth + 7) / 8, kScorePitch = kColumns + 1;
  (void)kTallKeys, (void)kWideRows, (void)kEighth, (void)kValueEighth, (void)kWide, (void)kTall, (void)kScorePitch;
  // Rows [first, first + count) of a matrix of `all` rows, `stride` apart, into a tile, zeros beyond it.
  const auto fill = [&](f32* tile, const auto* from, i64 stride, i64 first, i32 count, i64 all, i32 width, i32 depth) {
    for (i32 i = thread; i < count * depth; i += 128) {
      const i32 row = i / depth, column = i % depth;
      const bool inside = first + row < all && column < width;
      tile[row * (depth + 4) + column] = inside ? widen(from[(first + row) * stride + column]) : 0.0f;
    }
  };
  const auto dot = [](f32 sum, const f32* a, const f32* b) {
    const ltc_pack<f32, 4> p = *(const ltc_pack<f32, 4>*)a, q = *(const ltc_pack<f32, 4>*)b;
    return fmaf(p.x[3], q.x[3], fmaf(p.x[2], q.x[2], fmaf(p.x[1], q.x[1], fmaf(p.x[0], q.x[0], sum))));
  };
  // sums[m][n] += row m of a times row n of b, of `depth` elements. An element that is loaded is used for a whole row of sums. The
  // outer loop is not unrolled: the compiler would load further ahead than there are registers.
  const auto add_dots = [&](auto& sums, const f32* a, i32 a_row, const f32* b, i32 b_row, i32 depth) {
    constexpr i32 kDown = (i32)(sizeof(sums) / sizeof(sums[0])), kAcross = (i32)(sizeof(sums[0]) / sizeof(f32));
    #pragma unroll 1
    for (i32 e = 0; e < depth; e += 4) {
      #pragma unroll
      for (i32 m = 0; m < kDown; ++m) {
        #pragma unroll
        for (i32 n = 0; n < kAcross; ++n) sums[m][n] = dot(sums[m][n], a + m * a_row + e, b + n * b_row + e);
      }
    }
  };
  // Over the eight threads of a group.
  const auto group_sum = [](f32 sum) {
    for (i32 step = 1; step < 8; step *= 2) sum += ltc_partner(sum, step);
    return sum;
  };
  (void)dot, (void)add_dots, (void)group_sum;
)c";

inline constexpr const char* kAttentionForward = R"c(
  alignas(16) __shared__ f32 queries[kRows * kPitch];
  alignas(16) __shared__ f32 tile[kColumns * (kPitch > kValuePitch ? kPitch : kValuePitch)];
  __shared__ f32 weights[kRows * kScorePitch];
  const i64 tiles = (rows + kRows - 1) / kRows, pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kRows;
  const i64 batch = pair / heads, head = pair % heads, key_head = head / (heads / key_heads);
  fill(queries, at_q(batch, head), q_row, first, kRows, rows, kWidth, kDepth);
  f32 sums[kTall][kValueEighth] = {}, peak[kTall], total[kTall];
  for (i32 m = 0; m < kTall; ++m) peak[m] = -INFINITY, total[m] = 0;
  const i64 end = kCausal && first + kRows < columns ? first + kRows : columns;
  for (i64 key = 0; key < end; key += kColumns) {
    __syncthreads();
    fill(tile, at_k(batch, key_head), k_row, key, kColumns, columns, kWidth, kDepth);
    __syncthreads();
    f32 s[kTall][kWide] = {};
    add_dots(s, queries + y * kTall * kPitch, kPitch, tile + x * kPitch, 8 * kPitch, kDepth);
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      const i32 row = y * kTall + m;
      f32 best = peak[m];
      #pragma unroll
      for (i32 n = 0; n < kWide; ++n) {
        s[m][n] = masked(s[m][n] * scale, batch, head, first + row, key + x + 8 * n);
        best = s[m][n] > best || s[m][n] != s[m][n] ? s[m][n] : best;
      }
      for (i32 step = 1; step < 8; step *= 2) {
        const f32 other = ltc_partner(best, step);
        best = other > best || other != other ? other : best;
      }
      const f32 shift = best == -INFINITY ? 0.0f : best, fade = expf(peak[m] - shift);
      f32 sum = 0;
      #pragma unroll
      for (i32 n = 0; n < kWide; ++n) {
        const f32 weight = expf(s[m][n] - shift);
        sum += weight;
        weights[row * kScorePitch + x + 8 * n] = weight;
      }
      total[m] = total[m] * fade + group_sum(sum);
      peak[m] = best;
      #pragma unroll
      for (i32 j = 0; j < kValueEighth; ++j) sums[m][j] *= fade;
    }
    __syncthreads();
    fill(tile, at_v(batch, key_head), v_row, key, kColumns, columns, kValueWidth, kValueDepth);
    __syncthreads();
    #pragma unroll 4
    for (i32 c = 0; c < kColumns; ++c) {
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        const f32 weight = weights[(y * kTall + m) * kScorePitch + c];
        #pragma unroll
        for (i32 j = 0; j < kValueEighth; ++j) sums[m][j] = fmaf(weight, tile[c * kValuePitch + x + 8 * j], sums[m][j]);
      }
    }
  }
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) {
    const i64 row = first + y * kTall + m;
    if (row >= rows) continue;
    const f32 divisor = total[m] == 0 ? 1.0f : total[m];
    #pragma unroll
    for (i32 j = 0; j < kValueEighth; ++j) {
      if (x + 8 * j < kValueWidth) at_out(batch, head)[row * out_row + x + 8 * j] = narrow(sums[m][j] / divisor);
    }
    if (x == 0) logs[pair * rows + row] = (peak[m] == -INFINITY ? 0.0f : peak[m]) + logf(total[m]);
  }
)c";

// A block per tile of rows; what it needs of its rows' gradients and outputs, their inner products, is left for the other kernel.
inline constexpr const char* kAttentionQueryGradient = R"c(
  alignas(16) __shared__ f32 queries[kRows * kPitch];
  alignas(16) __shared__ f32 gradients[kRows * kValuePitch];
  alignas(16) __shared__ f32 keys[kColumns * kPitch];
  alignas(16) __shared__ f32 values[kColumns * kValuePitch];
  __shared__ f32 scores[kRows * kScorePitch];
  const i64 tiles = (rows + kRows - 1) / kRows, pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kRows;
  const i64 batch = pair / heads, head = pair % heads, key_head = head / (heads / key_heads);
  fill(queries, at_q(batch, head), q_row, first, kRows, rows, kWidth, kDepth);
  fill(gradients, at_g(batch, head), g_row, first, kRows, rows, kValueWidth, kValueDepth);
  __syncthreads();
  f32 inner[kTall], log[kTall], result[kTall][kEighth] = {};
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) {
    const i64 row = first + y * kTall + m;
    f32 sum = 0;
    for (i32 e = x; e < kValueWidth && row < rows; e += 8)
      sum = fmaf(gradients[(y * kTall + m) * kValuePitch + e], widen(at_out(batch, head)[row * out_row + e]), sum);
    inner[m] = group_sum(sum);
    log[m] = row < rows ? logs[pair * rows + row] : -INFINITY;
    if (row < rows && x == 0) sums[pair * rows + row] = inner[m];
  }
  const i64 end = kCausal && first + kRows < columns ? first + kRows : columns;
  for (i64 key = 0; key < end; key += kColumns) {
    __syncthreads();
    fill(keys, at_k(batch, key_head), k_row, key, kColumns, columns, kWidth, kDepth);
    fill(values, at_v(batch, key_head), v_row, key, kColumns, columns, kValueWidth, kValueDepth);
    __syncthreads();
    f32 s[kTall][kWide] = {}, d[kTall][kWide] = {};
    add_dots(s, queries + y * kTall * kPitch, kPitch, keys + x * kPitch, 8 * kPitch, kDepth);
    add_dots(d, gradients + y * kTall * kValuePitch, kValuePitch, values + x * kValuePitch, 8 * kValuePitch, kValueDepth);
    #pragma unroll
    for (i32 m = 0; m < kTall; ++m) {
      #pragma unroll
      for (i32 n = 0; n < kWide; ++n) {
        const i32 row = y * kTall + m, column = x + 8 * n;
        const f32 score = masked(s[m][n] * scale, batch, head, first + row, key + column);
        const f32 weight = log[m] == -INFINITY || score == -INFINITY ? 0.0f : expf(score - log[m]);
        scores[row * kScorePitch + column] = weight * (d[m][n] - inner[m]) * scale;
      }
    }
    __syncthreads();
    #pragma unroll 4
    for (i32 c = 0; c < kColumns; ++c) {
      #pragma unroll
      for (i32 m = 0; m < kTall; ++m) {
        const f32 score = scores[(y * kTall + m) * kScorePitch + c];
        #pragma unroll
        for (i32 j = 0; j < kEighth; ++j) result[m][j] = fmaf(score, keys[c * kPitch + x + 8 * j], result[m][j]);
      }
    }
  }
  #pragma unroll
  for (i32 m = 0; m < kTall; ++m) {
    const i64 row = first + y * kTall + m;
    #pragma unroll
    for (i32 j = 0; j < kEighth; ++j) {
      if (row < rows && x + 8 * j < kWidth) at_dq(batch, head)[row * dq_row + x + 8 * j] = narrow(result[m][j]);
    }
  }
)c";

// A block per tile of keys, over all queries of the heads that share them; keys are the rows of its scores.
inline constexpr const char* kAttentionKeyGradient = R"c(
  constexpr i32 kPitchOfRows = kRows + 1;
  alignas(16) __shared__ f32 queries[kRows * kPitch];
  alignas(16) __shared__ f32 gradients[kRows * kValuePitch];
  alignas(16) __shared__ f32 keys[kColumns * kPitch];
  alignas(16) __shared__ f32 values[kColumns * kValuePitch];
  __shared__ f32 weights[kColumns * kPitchOfRows], scores[kColumns * kPitchOfRows];
  const i64 tiles = (columns + kColumns - 1) / kColumns, key_pair = blockIdx.x / tiles, first = blockIdx.x % tiles * kColumns;
  const i64 batch = key_pair / key_heads, key_head = key_pair % key_heads, sharing = heads / key_heads;
  fill(keys, at_k(batch, key_head), k_row, first, kColumns, columns, kWidth, kDepth);
  fill(values, at_v(batch, key_head), v_row, first, kColumns, columns, kValueWidth, kValueDepth);
  f32 of_key[kTallKeys][kEighth] = {}, of_value[kTallKeys][kValueEighth] = {};
  for (i64 head = key_head * sharing; head < (key_head + 1) * sharing; ++head) {
    const i64 pair = batch * heads + head;
    for (i64 query = kCausal ? first / kRows * kRows : 0; query < rows; query += kRows) {
      __syncthreads();
      fill(queries, at_q(batch, head), q_row, query, kRows, rows, kWidth, kDepth);
      fill(gradients, at_g(batch, head), g_row, query, kRows, rows, kValueWidth, kValueDepth);
      __syncthreads();
      f32 s[kTallKeys][kWideRows] = {}, d[kTallKeys][kWideRows] = {};
      add_dots(s, keys + y * kTallKeys * kPitch, kPitch, queries + x * kPitch, 8 * kPitch, kDepth);
      add_dots(d, values + y * kTallKeys * kValuePitch, kValuePitch, gradients + x * kValuePitch, 8 * kValuePitch, kValueDepth);
      #pragma unroll
      for (i32 n = 0; n < kWideRows; ++n) {
        const i32 row = x + 8 * n;
        const bool inside = query + row < rows;
        const f32 log = inside ? logs[pair * rows + query + row] : -INFINITY, inner = inside ? sums[pair * rows + query + row] : 0.0f;
        #pragma unroll
        for (i32 m = 0; m < kTallKeys; ++m) {
          const i32 column = y * kTallKeys + m;
          const f32 score = masked(s[m][n] * scale, batch, head, query + row, first + column);
          const f32 weight = log == -INFINITY || score == -INFINITY ? 0.0f : expf(score - log);
          weights[column * kPitchOfRows + row] = weight;
          scores[column * kPitchOfRows + row] = weight * (d[m][n] - inner) * scale;
        }
      }
      __syncthreads();
      #pragma unroll 4
      for (i32 r = 0; r < kRows; ++r) {
        #pragma unroll
        for (i32 m = 0; m < kTallKeys; ++m) {
          const f32 weight = weights[(y * kTallKeys + m) * kPitchOfRows + r], score = scores[(y * kTallKeys + m) * kPitchOfRows + r];
          #pragma unroll
          for (i32 j = 0; j < kValueEighth; ++j)
            of_value[m][j] = fmaf(weight, gradients[r * kValuePitch + x + 8 * j], of_value[m][j]);
          #pragma unroll
          for (i32 j = 0; j < kEighth; ++j) of_key[m][j] = fmaf(score, queries[r * kPitch + x + 8 * j], of_key[m][j]);
        }
      }
    }
  }
  #pragma unroll
  for (i32 m = 0; m < kTallKeys; ++m) {
    const i64 row = first + y * kTallKeys + m;
    if (row >= columns) continue;
    #pragma unroll
    for (i32 j = 0; j < kEighth; ++j) {
      if (x + 8 * j < kWidth) at_dk(batch, key_head)[row * dk_row + x + 8 * j] = narrow(of_key[m][j]);
    }
    #pragma unroll
    for (i32 j = 0; j < kValueEighth; ++j) {
      if (x + 8 * j < kValueWidth) at_dv(batch, key_head)[row * dv_row + x + 8 * j] = narrow(of_value[m][j]);
    }
  }
)c";

}  // namespace ltc::kernels
