// Batches of small matrices, a column or a row at a time: [batch, rows, columns].
#pragma once

#include "core/decompose/support/call.h"

namespace ltc::decompose {

inline constexpr int64_t kLargestMatrix = 32;  // rows or columns: a dozen nodes for each; the host has larger ones

inline bool is_small(const Val& x) { return x.count() > 0 && x.size(-1) <= kLargestMatrix && x.size(-2) <= kLargestMatrix; }

inline Val batched(Val x) { return reshape(x, {-1, x.size(-2), x.size(-1)}); }
// ... its batch broadcast to that of `like`.
inline Val in_batch(Val x, const Ints& like) {
  Ints sizes(like.begin(), like.end() - 2);
  sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
  return batched(expand(x, sizes));
}

inline Val row_numbers(const Val& x) { return reshape(iota(*x.builder, x.size(1)), {1, x.size(1), 1}); }
inline Val column_numbers(const Val& x) { return reshape(iota(*x.builder, x.size(2)), {1, 1, x.size(2)}); }
inline Val row_of(Val x, int64_t k) { return slice(x, 1, k, k + 1); }
inline Val column_of(Val x, int64_t k) { return slice(x, 2, k, k + 1); }
inline Val matrix_transpose(Val x) { return transpose(x, 1, 2); }
inline Val identity(const Val& x) { return cast(row_numbers(x) == column_numbers(x), x.dtype()); }

// With zeros outside the triangle: what lies there does not count, NaN neither.
inline Val lower(Val x) { return where(column_numbers(x) <= row_numbers(x), x, zeros_like(x)); }
inline Val upper(Val x) { return where(column_numbers(x) >= row_numbers(x), x, zeros_like(x)); }
inline Val diagonal(Val x) { return sum(where(column_numbers(x) == row_numbers(x), x, zeros_like(x)), {2}); }  // of a square

}  // namespace ltc::decompose
