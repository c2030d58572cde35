// Cholesky and LU factors, and what is solved with them, one column at a time.
#include <algorithm>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/matrices.h"

namespace ltc::decompose {
namespace {

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
    rest = rest - column * matrix_transpose(column);
  }
  return {cat(columns, 2), info};
}
Results cholesky_ex(const Call& call) {
  const Val a = call.tensor("self");
  if (a.count() == 0) return zeros_of(call);
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const bool is_upper = call.flag("upper");
  const Cholesky c = cholesky_of(is_upper ? matrix_transpose(batched(a)) : batched(a));
  const Val factor = reshape(is_upper ? matrix_transpose(c.factor) : c.factor, a.sizes());
  return {factor, in_shape_of(call, 1, c.info)};
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

Results linalg_solve_triangular(const Call& call) {
  Val a = call.tensor("self"), b = call.tensor("B");
  if (b.count() == 0) return zeros_of(call);
  if (!is_small(a)) return nothing();
  const Ints& sizes = call.result().sizes;
  a = in_batch(a, sizes), b = in_batch(b, sizes);
  const bool is_upper = call.flag("upper"), unit = call.flag("unitriangular");
  const Val x = call.flag("left") ? solve_triangular(a, b, is_upper, unit)
                                  : matrix_transpose(solve_triangular(matrix_transpose(a), matrix_transpose(b), !is_upper, unit));
  return reshape(x, sizes);
}
Results triangular_solve(const Call& call) {
  const Val a = call.tensor("A"), b = call.tensor("self");
  if (b.count() == 0 && a.count() == 0) return zeros_of(call);
  if (!is_small(a) || b.count() == 0 || !call.wants(0)) return nothing();
  const Ints& sizes = call.result(0).sizes;
  const bool is_transposed = call.flag("transpose"), is_upper = call.flag("upper");
  const Val m = in_batch(a, sizes);
  const Val x = solve_triangular(is_transposed ? matrix_transpose(m) : m, in_batch(b, sizes), is_upper != is_transposed,
                                 call.flag("unitriangular"));
  return {reshape(x, sizes), call.wants(1) ? expand(a, call.result(1).sizes) : Val()};
}

// x of l l^T x = b.
Val solve_cholesky(Val l, Val b) { return solve_triangular(matrix_transpose(l), solve_lower(l, b, false), true, false); }
Results cholesky_solve(const Call& call) {
  Val b = call.tensor("self"), a = call.tensor("A");
  if (b.count() == 0) return zeros_of(call);
  if (!is_small(a)) return nothing();
  const Ints& sizes = call.result().sizes;
  a = in_batch(a, sizes);
  return reshape(solve_cholesky(call.flag("upper") ? matrix_transpose(upper(a)) : lower(a), in_batch(b, sizes)), sizes);
}
Results cholesky_inverse(const Call& call) {
  const Val a = call.tensor("self");
  if (a.count() == 0) return zeros_of(call);
  if (!is_small(a)) return nothing();
  const Val m = batched(a), l = call.flag("upper") ? matrix_transpose(upper(m)) : lower(m);
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

// The matrix whose row i has its one at column order[i], transposed: P of A = P L U.
Val permutation(Val order, DType dtype) {
  const int64_t n = order.size(1);
  return matrix_transpose(cast(order == reshape(iota(*order.builder, n), {1, 1, n}), dtype));
}

// x of P L U x = b, or of its transpose.
Val solve_lu(Val both, Val order, Val b, bool transposed) {
  if (!transposed) {
    const Val rows = gather(b, 1, expand(order, {b.size(0), b.size(1), b.size(2)}));
    return solve_triangular(both, solve_lower(both, rows, true), true, false);
  }
  const Val y = solve_lower(matrix_transpose(both), b, false), z = solve_triangular(matrix_transpose(both), y, true, true);
  return bmm(permutation(order, z.dtype()), z);
}
// x of x P L U = b, or of its transpose.
Val solve_lu_right(Val both, Val order, Val b, bool transposed) {
  return matrix_transpose(solve_lu(both, order, matrix_transpose(b), !transposed));
}

Results lu_factor(const Call& call) {
  const Val a = call.tensor("A");
  if (a.count() == 0) return zeros_of(call);
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const Lu lu = lu_of(batched(a), call.flag("pivot"));
  return {in_shape_of(call, 0, lu.both), in_shape_of(call, 1, lu.pivots), in_shape_of(call, 2, lu.info)};
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
  if (a.count() == 0) return zeros_of(call);
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const Val m = batched(a);
  const Lu lu = lu_of(m, true);
  const Val x = solve_lu(lu.both, lu.order, expand(identity(m), m.sizes()), false);
  return {reshape(x, a.sizes()), in_shape_of(call, 1, lu.info)};
}

Results lu_decomposition(const Call& call) {
  const Val a = call.tensor("A");
  if (a.count() == 0) return zeros_of(call);
  if (!is_small(a)) return nothing();
  const Lu lu = lu_of(batched(a), call.flag("pivot"));
  const Triangles t = triangles(lu.both);
  return {call.flag("pivot") ? in_shape_of(call, 0, permutation(lu.order, a.dtype()))
                             : (call.wants(0) ? full(call.builder(), a.dtype(), call.result(0).sizes, int64_t{0}) : Val()),
          in_shape_of(call, 1, t.l), in_shape_of(call, 2, t.u)};
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

// Results that are not asked for are empty.
Results lu_unpack(const Call& call) {
  const Val both = call.tensor("LU_data"), pivots = call.tensor("LU_pivots");
  const bool data = call.flag("unpack_data"), exchanges = call.flag("unpack_pivots");
  if (!is_small(both)) return nothing();
  Results results = zeros_of(call);
  if (data) {
    const Triangles t = triangles(batched(both));
    results.values[1] = in_shape_of(call, 1, t.l), results.values[2] = in_shape_of(call, 2, t.u);
  }
  if (exchanges && call.wants(0)) {
    const Val order = order_of(reshape(pivots, {-1, pivots.size(-1)}), both.size(-2));
    results.values[0] = in_shape_of(call, 0, permutation(order, both.dtype()));
  }
  return results;
}

Results lu_solve(const Call& call) {
  const Val given = call.tensor("LU"), b = call.tensor("B");
  if (b.count() == 0) return zeros_of(call);
  if (!is_small(given)) return nothing();
  const Ints& sizes = call.result().sizes;
  Val pivots = call.tensor("pivots");
  Ints wide(sizes.begin(), sizes.end() - 2);
  wide.push_back(pivots.size(-1));
  pivots = reshape(expand(pivots, wide), {-1, pivots.size(-1)});
  const auto solve = call.flag("left") ? solve_lu : solve_lu_right;
  const Val both = in_batch(given, sizes), order = order_of(pivots, both.size(1));
  return reshape(solve(both, order, in_batch(b, sizes), call.flag("adjoint")), sizes);
}

// Determinants factor the transpose of a matrix that is contiguous, as LAPACK reads columns; so their backward expects it.
Lu lu_for_determinant(const Call& call) {
  const Val a = batched(call.tensor("A"));
  return lu_of(call.is_contiguous("A") ? matrix_transpose(a) : a, true);
}

// One is an exchange of a row with itself.
Val sign_of_permutation(const Lu& lu) {
  const int64_t n = lu.pivots.size(1);
  const Val moves = sum(cast(lu.pivots != (iota(*lu.pivots.builder, n) + 1), DType::kI64), {1});
  return cast(1 - (moves & 1) * 2, lu.both.dtype());
}

// The determinant of no rows is one; the results of an empty batch are empty.
Results ones_first(const Call& call) {
  Results results = zeros_of(call);
  if (call.wants(0)) results.values[0] = full(call.builder(), call.result(0).dtype, call.result(0).sizes, int64_t{1});
  return results;
}

Results determinant(const Call& call) {
  const Val a = call.tensor("A");
  if (a.count() == 0) return ones_first(call);
  if (!is_small(a)) return nothing();
  const Lu lu = lu_for_determinant(call);
  const Val value = sign_of_permutation(lu) * prod(diagonal(lu.both), 1);
  return {in_shape_of(call, 0, value), in_shape_of(call, 1, lu.both), in_shape_of(call, 2, lu.pivots)};
}

Results log_determinant(const Call& call) {
  const Val a = call.tensor("A");
  if (a.count() == 0) return ones_first(call);
  if (!is_small(a)) return nothing();
  const Lu lu = lu_for_determinant(call);
  const Val along = diagonal(lu.both), turn = sign_of_permutation(lu) * prod(sign(along), 1);
  return {in_shape_of(call, 0, turn), in_shape_of(call, 1, sum(log(abs(along)), {1})), in_shape_of(call, 2, lu.both),
          in_shape_of(call, 3, lu.pivots)};
}

Results solve(const Call& call) {
  const Val a = call.tensor("A"), given = call.tensor("B");
  Results results = zeros_of(call);
  if (a.count() == 0) return results;
  if (!is_small(a) || call.flag("check_errors")) return nothing();
  const Lu lu = lu_of(batched(a), true);
  results.values[1] = in_shape_of(call, 1, lu.both);
  results.values[2] = in_shape_of(call, 2, lu.pivots);
  results.values[3] = in_shape_of(call, 3, lu.info);
  if (given.count() == 0 || !call.wants(0)) return results;
  const bool is_vector = given.rank() == 1 || std::ranges::equal(given.sizes(), std::span(a.sizes()).first(a.sizes().size() - 1));
  Ints sizes = call.result(0).sizes, orders(a.sizes().begin(), a.sizes().end() - 1);
  if (is_vector) sizes.push_back(1);
  orders.push_back(1);
  const auto how = call.flag("left") ? solve_lu : solve_lu_right;
  const Val both = in_batch(reshape(lu.both, a.sizes()), sizes), order = in_batch(reshape(lu.order, orders), sizes);
  const Val x = how(both, order, in_batch(is_vector ? unsqueeze(given, -1) : given, sizes), false);
  results.values[0] = in_shape_of(call, 0, x);
  return results;
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
    {"aten::_linalg_det", determinant},
    {"aten::_linalg_slogdet", log_determinant},
    {"aten::_linalg_solve_ex", solve},
};

}  // namespace

std::span<const Decomposition> factorizations() { return kRules; }

}  // namespace ltc::decompose
