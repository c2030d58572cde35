// Factorizations and triangular solves, one column at a time: for small matrices; larger ones stay on the host.
#include <algorithm>

#include "core/decompose/families.h"

namespace ltc::decompose {
namespace {

constexpr int64_t kLargest = 32;  // a dozen nodes per column

bool is_empty(const Val& x) { return x.count() == 0 && x.size(-1) == x.size(-2); }
// All results, being empty or counts of none.
Results zeros_for(const Call& call, size_t count) {
  std::vector<Val> results(count);
  for (size_t i = 0; i < count; ++i) {
    if (call.wants(i)) results[i] = full(call.builder(), call.result(i).dtype, call.result(i).sizes, int64_t{0});
  }
  return results;
}

// [batch, rows, columns].
Val batched(Val x) { return reshape(x, {-1, x.size(-2), x.size(-1)}); }
bool is_small(const Val& x) { return x.count() > 0 && x.size(-1) <= kLargest && x.size(-2) <= kLargest; }
Val row_numbers(const Val& x) { return reshape(iota(*x.builder, x.size(1)), {1, x.size(1), 1}); }
Val column_numbers(const Val& x) { return reshape(iota(*x.builder, x.size(2)), {1, 1, x.size(2)}); }
Val row_of(Val x, int64_t k) { return slice(x, 1, k, k + 1); }
Val column_of(Val x, int64_t k) { return slice(x, 2, k, k + 1); }
Val turned(Val x) { return transpose(x, 1, 2); }

// With a matrix of zeros outside the triangle: what lies there does not count, NaN neither.
Val lower(Val x) { return where(column_numbers(x) <= row_numbers(x), x, zeros_like(x)); }
Val upper(Val x) { return where(column_numbers(x) >= row_numbers(x), x, zeros_like(x)); }

struct Cholesky {
  Val factor, info;  // info: the first column, from 1, that is not positive; 0 if there is none
};
Cholesky cholesky_of(Val a) {
  Val rest = lower(a), info = full(*a.builder, DType::kI64, {a.size(0)}, int64_t{0});
  std::vector<Val> columns;
  for (int64_t k = 0; k < a.size(1); ++k) {
    const Val pivot = slice(column_of(rest, k), 1, k, k + 1), bad = reshape(~(pivot > 0), {a.size(0)});
    info = where((info == 0) & bad, full(*a.builder, DType::kI64, {1}, k + 1), info);
    const Val column = where(row_numbers(a) >= k, column_of(rest, k) / sqrt(pivot), zeros_like(column_of(rest, k)));
    columns.push_back(column);
    rest = rest - column * turned(column);
  }
  return {cat(columns, 2), info};
}
Results cholesky_ex(const Call& call) {
  const Val a = call.tensor("self");
  if (is_empty(a)) return zeros_for(call, 2);
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const bool is_upper = call.flag("upper");
  const Cholesky c = cholesky_of(is_upper ? turned(batched(a)) : batched(a));
  const Val factor = reshape(is_upper ? turned(c.factor) : c.factor, a.sizes());
  return {factor, call.wants(1) ? reshape(c.info, call.result(1).sizes) : Val()};
}

// x of lower triangular l x = b, from the first row down.
Val solve_lower(Val l, Val b, bool has_unit_diagonal) {
  std::vector<Val> rows;
  for (int64_t k = 0; k < l.size(1); ++k) {
    Val row = row_of(b, k);
    if (!has_unit_diagonal) row = row / column_of(row_of(l, k), k);
    rows.push_back(row);
    const Val below = where(row_numbers(l) > k, column_of(l, k), zeros_like(column_of(l, k)));
    b = b - below * row;
  }
  return cat(rows, 1);
}
// An upper triangle is a lower one with rows and columns in the other order.
Val solve_triangular(Val a, Val b, bool is_upper, bool has_unit_diagonal) {
  if (!is_upper) return solve_lower(a, b, has_unit_diagonal);
  return flip(solve_lower(flip(a, {1, 2}), flip(b, {1}), has_unit_diagonal), {1});
}

// Batches of both broadcast to that of the result.
Val in_batch(Val x, const Ints& like) {
  Ints sizes(like.begin(), like.end() - 2);
  sizes.insert(sizes.end(), {x.size(-2), x.size(-1)});
  return batched(expand(x, sizes));
}

Results linalg_solve_triangular(const Call& call) {
  Val a = call.tensor("self"), b = call.tensor("B");
  if (!is_small(a) || b.count() == 0) return nothing();
  const Ints& sizes = call.result().sizes;
  a = in_batch(a, sizes), b = in_batch(b, sizes);
  const bool is_upper = call.flag("upper"), unit = call.flag("unitriangular");
  const Val x = call.flag("left") ? solve_triangular(a, b, is_upper, unit)
                                  : turned(solve_triangular(turned(a), turned(b), !is_upper, unit));
  return reshape(x, sizes);
}
Results triangular_solve(const Call& call) {
  const Val a = call.tensor("A"), b = call.tensor("self");
  if (!is_small(a) || b.count() == 0 || !call.wants(0)) return nothing();
  const Ints& sizes = call.result(0).sizes;
  const bool is_turned = call.flag("transpose"), is_upper = call.flag("upper");
  const Val m = in_batch(a, sizes);
  const Val x =
      solve_triangular(is_turned ? turned(m) : m, in_batch(b, sizes), is_upper != is_turned, call.flag("unitriangular"));
  return {reshape(x, sizes), call.wants(1) ? expand(a, call.result(1).sizes) : Val()};
}

// x of l l^T x = b.
Val solve_cholesky(Val l, Val b) { return solve_triangular(turned(l), solve_lower(l, b, false), true, false); }
Results cholesky_solve(const Call& call) {
  Val b = call.tensor("self"), a = call.tensor("A");
  if (!is_small(a) || b.count() == 0) return nothing();
  const Ints& sizes = call.result().sizes;
  a = in_batch(a, sizes);
  return reshape(solve_cholesky(call.flag("upper") ? turned(upper(a)) : lower(a), in_batch(b, sizes)), sizes);
}
Val identity(const Val& a) { return cast(row_numbers(a) == column_numbers(a), a.dtype()); }
Results cholesky_inverse(const Call& call) {
  const Val a = call.tensor("self");
  if (!is_small(a)) return nothing();
  const Val m = batched(a), l = call.flag("upper") ? turned(upper(m)) : lower(m);
  return reshape(solve_cholesky(l, expand(identity(m), m.sizes())), a.sizes());
}

// L below the diagonal and U above; pivots as LAPACK gives them, from 1; `order`: which row of a each row comes from.
struct Lu {
  Val both, pivots, info, order;
};
Lu lu_of(Val a, bool pivots) {
  Builder& b = *a.builder;
  const int64_t batch = a.size(0), rows = a.size(1), steps = std::min(rows, a.size(2));
  const Val numbers = row_numbers(a);
  Val info = full(b, DType::kI64, {batch, 1, 1}, int64_t{0}), order = expand(numbers, {batch, rows, 1});
  std::vector<Val> chosen;
  for (int64_t k = 0; k < steps; ++k) {
    Val at = full(b, DType::kI64, {batch, 1, 1}, k);
    if (pivots) {
      at = argmax(abs(slice(column_of(a, k), 1, k, rows)), 1, true) + k;
      const Val from = where(numbers == k, at, where(numbers == at, full(b, DType::kI64, {1}, k), numbers));
      a = gather(a, 1, expand(from, a.sizes()));
      order = gather(order, 1, from);
    }
    chosen.push_back(at + 1);
    const Val pivot = column_of(row_of(a, k), k), singular = pivot == 0;
    info = where((info == 0) & singular, full(b, DType::kI64, {1}, k + 1), info);
    const Val column = column_of(a, k), below = numbers > k;
    const Val factor = where(below, column / where(singular, ones_like(pivot), pivot), zeros_like(column));
    const Val right = column_numbers(a) > k, updated = a - factor * where(right, row_of(a, k), zeros_like(row_of(a, k)));
    a = where((column_numbers(a) == k) & below, factor, updated);
  }
  return {a, reshape(cat(chosen, 1), {batch, steps}), reshape(info, {batch}), order};
}

Val solve_lu(Val both, Val b) { return solve_triangular(both, solve_lower(both, b, true), true, false); }
Val picked_rows(Val x, Val order) { return gather(x, 1, expand(order, {x.size(0), x.size(1), x.size(2)})); }

Results lu_factor(const Call& call) {
  const Val a = call.tensor("A");
  if (is_empty(a)) return zeros_for(call, 3);
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const Lu lu = lu_of(batched(a), call.flag("pivot"));
  const auto in_shape = [&](size_t i, Val value) { return call.wants(i) ? reshape(value, call.result(i).sizes) : Val(); };
  return {in_shape(0, lu.both), in_shape(1, lu.pivots), in_shape(2, lu.info)};
}

// The matrix whose row i has its one at column order[i], turned: P of A = P L U.
Val permutation(Val order, DType dtype) {
  const int64_t n = order.size(1);
  return turned(cast(order == reshape(iota(*order.builder, n), {1, 1, n}), dtype));
}
struct Triangles {
  Val l, u;
};
Triangles triangles(Val both) {
  const int64_t steps = std::min(both.size(1), both.size(2));
  const Val l = slice(both, 2, 0, steps), u = slice(both, 1, 0, steps);
  return {where(column_numbers(l) < row_numbers(l), l, cast(column_numbers(l) == row_numbers(l), l.dtype())), upper(u)};
}

// A singular matrix gives what divisions by 0 give, and its info.
Results inverse(const Call& call) {
  const Val a = call.tensor("A");
  if (is_empty(a)) return zeros_for(call, 2);
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const Val m = batched(a);
  const Lu lu = lu_of(m, true);
  const Val x = solve_lu(lu.both, picked_rows(expand(identity(m), m.sizes()), lu.order));
  return {reshape(x, a.sizes()), call.wants(1) ? reshape(lu.info, call.result(1).sizes) : Val()};
}

Results lu_decomposition(const Call& call) {
  const Val a = call.tensor("A");
  if (is_empty(a)) return zeros_for(call, 3);
  if (!is_small(a)) return nothing();
  const Lu lu = lu_of(batched(a), call.flag("pivot"));
  const Triangles t = triangles(lu.both);
  const auto in_shape = [&](size_t i, Val value) { return call.wants(i) ? reshape(value, call.result(i).sizes) : Val(); };
  return {call.flag("pivot") ? in_shape(0, permutation(lu.order, a.dtype()))
                             : (call.wants(0) ? full(call.builder(), a.dtype(), call.result(0).sizes, int64_t{0}) : Val()),
          in_shape(1, t.l), in_shape(2, t.u)};
}

// The rows that LAPACK's exchanges, one after the other, lead to.
Val order_of(Val pivots, int64_t rows) {
  const int64_t batch = pivots.size(0);
  Builder& b = *pivots.builder;
  const Val numbers = reshape(iota(b, rows), {1, rows, 1});
  Val order = expand(numbers, {batch, rows, 1});
  for (int64_t k = 0; k < pivots.size(1); ++k) {
    const Val at = reshape(cast(slice(pivots, 1, k, k + 1), DType::kI64), {batch, 1, 1}) - 1;
    order = gather(
        order, 1, where(numbers == k, at, where(numbers == at, full(b, DType::kI64, {1}, k), expand(numbers, {batch, rows, 1}))));
  }
  return order;
}

Results lu_unpack(const Call& call) {
  const Val both = call.tensor("LU_data"), pivots = call.tensor("LU_pivots");
  if (!is_small(both) || !call.flag("unpack_data") || !call.flag("unpack_pivots")) return nothing();
  const Triangles t = triangles(batched(both));
  const auto in_shape = [&](size_t i, Val value) { return call.wants(i) ? reshape(value, call.result(i).sizes) : Val(); };
  const Val p =
      call.wants(0) ? permutation(order_of(reshape(pivots, {-1, pivots.size(-1)}), both.size(-2)), both.dtype()) : Val();
  return {in_shape(0, p), in_shape(1, t.l), in_shape(2, t.u)};
}

// x of P L U x = b, or of its transpose.
Results lu_solve(const Call& call) {
  const Val given = call.tensor("LU"), b = call.tensor("B");
  if (!is_small(given) || b.count() == 0 || !call.flag("left")) return nothing();
  const Ints& sizes = call.result().sizes;
  const Val both = in_batch(given, sizes), right = in_batch(b, sizes);
  Val pivots = call.tensor("pivots");
  Ints wide(sizes.begin(), sizes.end() - 2);
  wide.push_back(pivots.size(-1));
  pivots = reshape(expand(pivots, wide), {-1, pivots.size(-1)});
  const Val order = order_of(pivots, both.size(1));
  if (!call.flag("adjoint")) return reshape(solve_lu(both, picked_rows(right, order)), sizes);
  const Val y = solve_triangular(turned(both), right, false, false), z = solve_triangular(turned(both), y, true, true);
  return reshape(bmm(permutation(order, z.dtype()), z), sizes);
}

constexpr Decomposition kRules[] = {
    {"aten::linalg_cholesky_ex", cholesky_ex},
    {"aten::linalg_solve_triangular", linalg_solve_triangular},
    {"aten::triangular_solve", triangular_solve},
    {"aten::_cholesky_solve_helper", cholesky_solve},
    {"aten::cholesky_inverse", cholesky_inverse},
    {"aten::linalg_inv_ex", inverse},
    {"aten::linalg_lu_factor_ex", lu_factor},
    {"aten::linalg_lu", lu_decomposition},
    {"aten::lu_unpack", lu_unpack},
    {"aten::linalg_lu_solve", lu_solve},
};

}  // namespace

std::span<const Decomposition> factorizations() { return kRules; }

}  // namespace ltc::decompose
