// The scores of a block of queries and a block of keys stay in the cache. All products are of the same form: the left operand is
// read where it lies, element by element, by rows or by columns; the right one, whose rows are read in vectors, is laid out anew
// in panels of two vectors' width, its last columns filled up with zeros.
#include "cpu_kernels/attention.h"

#include "cpu_kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include <math.h>
#include <string.h>

#include "cpu_kernels/floats-inl.h"
#include "cpu_kernels/maths-inl.h"
#include "cpu_kernels/product_tile-inl.h"
#include "cpu_kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kKeys = 128;          // of a block
constexpr int64_t kQueries = 32;        // of a block
constexpr int64_t kBackwardKeys = 128;  // whose scores are needed by rows and by columns
constexpr int64_t kBackwardQueries = 64;

constexpr float kInfinity = __builtin_inff();

inline int64_t padded(int64_t count) { return (count + kWidth - 1) / kWidth * kWidth; }

// The right operand of a product, laid out anew: panels one after the other, each with all its rows.
struct Panels {
  float* data;
  int64_t rows, columns;

  bool is_wide(int64_t column) const { return columns - column > kWidth; }
  // The vectors that begin at that column.
  float* panel(int64_t column) const { return data + column * rows; }
};

// to (+)= a b, of b the first `depth` rows and the first columns.
void multiply(const LeftOperand& a, int64_t rows, int64_t depth, const Panels& b, int64_t columns, const WritableRows& to,
              bool add = false) {
  for (int64_t column = 0; column < columns; column += kPanel) {
    const bool is_wide = b.is_wide(column);
    multiply_panel(a, rows, depth, {b.panel(column), is_wide ? kPanel : kWidth}, is_wide, to.data + column, to.stride, add);
  }
}

// `rows` rows of `size` elements.
Panels laid_out(const Rows& from, int64_t rows, int64_t size, float* to) {
  const Panels panels{to, rows, size};
  for (int64_t column = 0; column < size; column += kPanel) {
    const int64_t width = panels.is_wide(column) ? kPanel : kWidth;
    float* out = panels.panel(column);
    for (int64_t row = 0; row < rows; ++row, out += width) {
      for (int64_t i = 0; i < width; i += kWidth) {
        const int64_t rest = size - column - i;
        const float* const x = from.row(row) + column + i;
        (rest >= kWidth ? Vec::load(x) : load_first(x, rest)).store(out + i);
      }
    }
  }
  return panels;
}

// kWidth rows of kWidth elements.
HWY_INLINE void transpose_block(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  for (int64_t row = 0; row < kWidth; row += kSide) {
    for (int64_t column = 0; column < kWidth; column += kSide) {
      transpose_tile(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride);
    }
  }
}

// The same rows as columns.
Panels laid_out_across(const Rows& from, int64_t rows, int64_t size, float* to) {
  const Panels panels{to, size, rows};
  for (int64_t column = 0; column < rows; column += kPanel) {
    const int64_t width = panels.is_wide(column) ? kPanel : kWidth;
    float* const out = panels.panel(column);
    for (int64_t i = 0; i < width; i += kWidth) {
      const int64_t count = least(rows - column - i, kWidth);
      const float* const x = from.row(column + i);
      int64_t k = 0;
      if (count == kWidth) {
        for (; k + kWidth <= size; k += kWidth) {
          transpose_block(x + k, from.stride, out + k * width + i, width);
        }
      }
      for (; k < size; ++k) {
        float* const lanes = out + k * width + i;
        for (int64_t j = 0; j < kWidth; ++j) lanes[j] = j < count ? x[j * from.stride + k] : 0;
      }
    }
  }
  return panels;
}

// Exponentials of numbers up to 88. A result too small for a normal number becomes 0.
HWY_INLINE Vec exponential(const Vec& x) {
  constexpr float kLeast = -87.f;
  float given[kWidth], lanes[kWidth];
  x.store(given);
  larger(Vec(kLeast), x).store(lanes);
  for (int64_t i = 0; i < kWidth; ++i) lanes[i] = given[i] < kLeast ? 0 : ltc_exp_normal_f32(lanes[i]);
  return Vec::load(lanes);
}

// The scores of a query and a block of keys, of which it sees all or the first of them.
struct ScoreRow {
  float* scores;
  int64_t seen, padded;

  template <typename Change>
  void change(Change change) const {
    for (int64_t i = 0; i < padded; i += kWidth) change(i, Vec::load(scores + i)).store(scores + i);
  }

  void fill_unseen(float value) const {
    for (int64_t i = seen; i < padded; ++i) scores[i] = value;
  }

  void scale_and_mask(float scale, const float* mask, int64_t mask_stride) const {
    if (!mask || mask_stride > 1) {
      change([&](int64_t, const Vec& x) { return x * Vec(scale); });
      for (int64_t i = 0; mask && i < seen; ++i) scores[i] += mask[i * mask_stride];
    } else if (mask_stride == 0) {
      change([&](int64_t, const Vec& x) { return multiply_add(x, Vec(scale), Vec(*mask)); });
    } else {
      int64_t i = 0;
      for (; i + kWidth <= seen; i += kWidth)
        multiply_add(Vec::load(scores + i), Vec(scale), Vec::load(mask + i)).store(scores + i);
      for (; i < seen; ++i) scores[i] = scores[i] * scale + mask[i];
    }
  }

  float largest() const {
    Vec most(-kInfinity);
    for (int64_t i = 0; i < padded; i += kWidth) most = larger(most, Vec::load(scores + i));
    return fold(most, Larger{});
  }
};

// The factor of a score when its exponential is taken. It is 1 if the score has been multiplied before. A factor beyond 1 could
// make infinities of numbers.
inline float late_scale(const AttentionHead& head) {
  return !head.mask.data && head.scale > 0 && head.scale <= 1 ? head.scale : 1;
}

inline int64_t seen_by(const AttentionHead& head, int64_t query, int64_t first_key, int64_t count) {
  if (!head.causal) return count;
  const int64_t seen = least(query + 1 - first_key, count);
  return seen > 0 ? seen : 0;
}

inline const float* mask_of(const AttentionHead& head, int64_t query, int64_t key) {
  return head.mask.data ? head.mask.data + query * head.mask.row_stride + key * head.mask.column_stride : nullptr;
}

// The softmax so far, of one query: its weights are exp(score - most).
struct Softmax {
  float most = -kInfinity, sum = 0;

  // Before the weights of more keys; returns what those before have to be multiplied with.
  float raise(float to) {
    const float before = most;
    if (most > to || to == -kInfinity) return 1;
    most = to;
    return before == -kInfinity ? 0 : expf(before - most);
  }

  // Turns scores into weights.
  void add(const ScoreRow& row, float scale) {
    Vec total(0.f);
    if (most == -kInfinity) {  // nothing is seen, unless it is NaN
      row.change([&](int64_t, const Vec& x) {
        const Vec weight = only_nan(x);
        total = total + weight;
        return weight;
      });
    } else {
      row.change([&](int64_t, const Vec& x) {
        const Vec weight = exponential(multiply_add(x, Vec(scale), Vec(-most)));
        total = total + weight;
        return weight;
      });
    }
    sum += fold(total);
  }

  // A query that sees nothing has the result 0.
  float log_sum() const { return (most == -kInfinity ? 0 : most) + ltc_log_f32(divisor()); }
  float divisor() const { return sum == 0 ? 1 : sum; }
};

inline void scale_row(float* to, const float* from, int64_t size, float scale) {
  int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) (Vec::load(from + i) * Vec(scale)).store(to + i);
  for (; i < size; ++i) to[i] = from[i] * scale;
}

// Takes cache lines of the scratch memory, or counts them.
struct Scratch {
  float* next;
  float* take(int64_t count) {
    float* const taken = next;
    next += (count + 15) / 16 * 16;
    return taken;
  }
};

// Keys of a block, where there are enough, and the width of a row of scores.
inline int64_t keys_together(const AttentionHead& head, int64_t most) {
  return least(most, (head.key_count + kPanel - 1) / kPanel * kPanel);
}

struct ForwardScratch {
  ForwardScratch(const AttentionHead& head, Scratch scratch)
      : keys_each(keys_together(head, kKeys)),
        keys(scratch.take(keys_each * head.size)),
        values(scratch.take(keys_each * padded(head.size))),
        scores(scratch.take(kQueries * keys_each)),
        sums(scratch.take(least(head.query_count, kQueriesTogether) * padded(head.size))),
        end(scratch.next) {}

  int64_t keys_each;
  float *keys, *values, *scores, *sums, *end;
};

void attend_block(const AttentionHead& head, int64_t first, int64_t last, const WritableRows& out, const Numbers& log_sums,
                  float* scratch) {
  const ForwardScratch memory(head, {scratch});
  const WritableRows scores{memory.scores, memory.keys_each}, sums{memory.sums, padded(head.size)};
  Softmax softmaxes[kQueriesTogether];
  const float scale = late_scale(head);
  const int64_t all_seen = head.causal ? least(head.key_count, last) : head.key_count;
  for (int64_t key = 0; key < all_seen; key += memory.keys_each) {
    const int64_t keys = least(all_seen - key, memory.keys_each);
    const Panels across = laid_out_across({head.keys.row(key), head.keys.stride}, keys, head.size, memory.keys);
    const Panels values = laid_out({head.values.row(key), head.values.stride}, keys, head.size, memory.values);
    for (int64_t query = first; query < last; query += kQueries) {
      const int64_t queries = least(last - query, kQueries), seen = seen_by(head, query + queries - 1, key, keys);
      if (seen == 0) continue;
      const WritableRows so_far{sums.row(query - first), sums.stride};
      multiply({head.queries.row(query), head.queries.stride, 1}, queries, head.size, across, seen, scores);
      const auto row_of = [&](int64_t i) { return ScoreRow{scores.row(i), seen_by(head, query + i, key, keys), padded(seen)}; };
      for (int64_t i = 0; i < queries; ++i) {
        const ScoreRow row = row_of(i);
        if (scale != head.scale || head.mask.data)
          row.scale_and_mask(head.scale, mask_of(head, query + i, key), head.mask.column_stride);
        row.fill_unseen(-kInfinity);
        Softmax& softmax = softmaxes[query - first + i];
        const float less = softmax.raise(row.largest() * scale);
        softmax.sum *= less;
        if (key > 0) scale_row(so_far.row(i), so_far.row(i), sums.stride, less);
      }
      for (int64_t i = 0; i < queries; ++i) softmaxes[query - first + i].add(row_of(i), scale);
      multiply({scores.data, scores.stride, 1}, queries, seen, values, head.size, so_far, key > 0);
    }
  }
  for (int64_t query = first; query < last; ++query) log_sums[query] = softmaxes[query - first].log_sum();
  for (int64_t query = first; query < last; ++query) {
    const Softmax& done = softmaxes[query - first];
    scale_row(out.row(query), sums.row(query - first), head.size, 1 / done.divisor());
  }
}

// Sums then stand in the results from the beginning.
inline bool writes_whole_vectors(const AttentionHead& head) { return head.size % kWidth == 0; }

struct BackwardScratch {
  BackwardScratch(const AttentionHead& head, Scratch scratch)
      : keys_each(keys_together(head, kBackwardKeys)),
        keys_across(scratch.take(keys_each * head.size)),
        values_across(scratch.take(keys_each * head.size)),
        keys(scratch.take(keys_each * padded(head.size))),
        queries(scratch.take(kBackwardQueries * padded(head.size))),
        of_out(scratch.take(kBackwardQueries * padded(head.size))),
        weights(scratch.take(kBackwardQueries * keys_each)),
        of_scores(scratch.take(kBackwardQueries * keys_each)),
        of_keys(scratch.take(keys_each * padded(head.size))),
        of_values(scratch.take(keys_each * padded(head.size))),
        of_queries(scratch.take(writes_whole_vectors(head) ? 0 : head.query_count * padded(head.size))),
        products(scratch.take(head.query_count)),
        end(scratch.next) {}

  int64_t keys_each;
  float *keys_across, *values_across, *keys, *queries, *of_out, *weights, *of_scores, *of_keys, *of_values, *of_queries,
      *products, *end;
};

inline float inner_product(const float* a, const float* b, int64_t size) {
  Vec sum(0.f);
  int64_t i = 0;
  for (; i + kWidth <= size; i += kWidth) sum = multiply_add(Vec::load(a + i), Vec::load(b + i), sum);
  float rest = 0;
  for (; i < size; ++i) rest += a[i] * b[i];
  return fold(sum) + rest;
}

inline void clear(const WritableRows& rows, int64_t count, int64_t size) {
  for (int64_t i = 0; i < count; ++i) memset(rows.row(i), 0, static_cast<size_t>(size) * sizeof(float));
}

inline void copy(const WritableRows& from, int64_t count, int64_t size, const WritableRows& to) {
  for (int64_t i = 0; i < count; ++i) memcpy(to.row(i), from.row(i), static_cast<size_t>(size) * sizeof(float));
}

// Scores become weights, and the gradients of weights those of what was scaled to scores; `product` is that of the gradient of
// the query's result with the result.
inline void differentiate(const ScoreRow& row, const ScoreRow& gradients, float late_scale, float scale, float log_sum,
                          float product) {
  for (int64_t i = 0; i < row.padded; i += kWidth) {
    const Vec weight = exponential(smaller(Vec(88.f), multiply_add(Vec::load(row.scores + i), Vec(late_scale), Vec(-log_sum))));
    weight.store(row.scores + i);
    (weight * (Vec::load(gradients.scores + i) - Vec(product)) * Vec(scale)).store(gradients.scores + i);
  }
  row.fill_unseen(0);
  gradients.fill_unseen(0);
}

void attend_head_backward(const AttentionHead& head, const AttentionGradients& to, float* scratch) {
  const BackwardScratch memory(head, {scratch});
  const int64_t width = padded(head.size);
  const float scale = late_scale(head);
  const WritableRows weights{memory.weights, memory.keys_each}, of_scores{memory.of_scores, memory.keys_each};
  const bool in_place = writes_whole_vectors(head);
  const WritableRows of_queries = in_place ? to.queries : WritableRows{memory.of_queries, width};
  for (int64_t i = 0; i < head.query_count; ++i) memory.products[i] = inner_product(to.of_out.row(i), to.out.row(i), head.size);
  for (int64_t key = 0; key < head.key_count; key += memory.keys_each) {
    const int64_t keys = least(head.key_count - key, memory.keys_each);
    const Rows own_keys{head.keys.row(key), head.keys.stride}, own_values{head.values.row(key), head.values.stride};
    const Panels keys_across = laid_out_across(own_keys, keys, head.size, memory.keys_across);
    const Panels values_across = laid_out_across(own_values, keys, head.size, memory.values_across);
    const Panels key_rows = laid_out(own_keys, keys, head.size, memory.keys);
    const WritableRows of_keys = in_place ? WritableRows{to.keys.row(key), to.keys.stride} : WritableRows{memory.of_keys, width};
    const WritableRows of_values =
        in_place ? WritableRows{to.values.row(key), to.values.stride} : WritableRows{memory.of_values, width};
    if (head.causal) {  // nothing may be added to some
      clear(of_keys, keys, width);
      clear(of_values, keys, width);
    }
    for (int64_t query = 0; query < head.query_count; query += kBackwardQueries) {
      const int64_t queries = least(head.query_count - query, kBackwardQueries);
      const int64_t seen = seen_by(head, query + queries - 1, key, keys);
      if (seen == 0) continue;
      const Rows own_queries{head.queries.row(query), head.queries.stride}, of_out{to.of_out.row(query), to.of_out.stride};
      multiply({own_queries.data, own_queries.stride, 1}, queries, head.size, keys_across, seen, weights);
      multiply({of_out.data, of_out.stride, 1}, queries, head.size, values_across, seen, of_scores);
      for (int64_t i = 0; i < queries; ++i) {
        const ScoreRow row{weights.row(i), seen_by(head, query + i, key, keys), padded(seen)};
        if (scale != head.scale || head.mask.data)
          row.scale_and_mask(head.scale, mask_of(head, query + i, key), head.mask.column_stride);
        differentiate(row, {of_scores.row(i), row.seen, row.padded}, scale, head.scale, to.log_sums[query + i],
                      memory.products[query + i]);
      }
      const Panels query_rows = laid_out(own_queries, queries, head.size, memory.queries);
      const Panels of_out_rows = laid_out(of_out, queries, head.size, memory.of_out);
      multiply({weights.data, 1, weights.stride}, seen, queries, of_out_rows, head.size, of_values, head.causal || query > 0);
      multiply({of_scores.data, 1, of_scores.stride}, seen, queries, query_rows, head.size, of_keys, head.causal || query > 0);
      multiply({of_scores.data, of_scores.stride, 1}, queries, seen, key_rows, head.size,
               {of_queries.row(query), of_queries.stride}, key > 0);
    }
    if (!in_place) {
      copy(of_keys, keys, head.size, {to.keys.row(key), to.keys.stride});
      copy(of_values, keys, head.size, {to.values.row(key), to.values.stride});
    }
  }
  if (!in_place) copy(of_queries, head.query_count, head.size, to.queries);
}

int64_t scratch_size(const AttentionHead& head) { return ForwardScratch(head, {nullptr}).end - static_cast<float*>(nullptr); }

int64_t backward_scratch_size(const AttentionHead& head) {
  return BackwardScratch(head, {nullptr}).end - static_cast<float*>(nullptr);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ltc::cpu {

void attend(const AttentionHead& head, int64_t first, int64_t last, const WritableRows& out, const Numbers& log_sums,
            float* scratch) {
  LTC_CHOSEN(attend_block)(head, first, last, out, log_sums, scratch);
}
void attend_backward(const AttentionHead& head, const AttentionGradients& gradients, float* scratch) {
  LTC_CHOSEN(attend_head_backward)(head, gradients, scratch);
}
int64_t attention_scratch(const AttentionHead& head) { return LTC_CHOSEN(scratch_size)(head); }
int64_t attention_backward_scratch(const AttentionHead& head) { return LTC_CHOSEN(backward_scratch_size)(head); }

}  // namespace ltc::cpu
#endif
