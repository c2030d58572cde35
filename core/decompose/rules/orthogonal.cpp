// QR factors and products of Householder's reflections, one column at a time, as LAPACK's geqrf, orgqr and ormqr have them.
#include <algorithm>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/matrices.h"

namespace ltc::decompose {
namespace {

// R on and above the diagonal; below it, under a one that is not written, the vectors v of the reflections I - tau v v^T.
struct Reflections {
  Val both, tau;
};

// x less tau v (v^T x).
Val reflected(Val x, Val v, Val tau) { return x - bmm(v * tau, bmm(matrix_transpose(v), x)); }

// Column k of `both` as a vector: 0 above the diagonal, 1 on it.
Val vector_of(Val both, int64_t k) {
  const Val numbers = row_numbers(both), column = column_of(both, k);
  return where(numbers > k, column, cast(numbers == k, column.dtype()));
}
Val tau_of(Val tau, int64_t k) { return unsqueeze(slice(tau, 1, k, k + 1), -1); }

Reflections reflections_of(Val a) {
  const int64_t rows = a.size(1), steps = std::min(rows, a.size(2));
  const Val numbers = row_numbers(a);
  std::vector<Val> taus;
  for (int64_t k = 0; k < steps; ++k) {
    const Val column = column_of(a, k), head = row_of(column, k), rest = where(numbers > k, column, zeros_like(column));
    const Val scale = amax(abs(rest), {1}, true), safe = where(scale == 0, ones_like(scale), scale);
    const Val size = sqrt(sum(square(rest / safe), {1}, true)) * scale;  // of the rest, squared in the middle of the range
    const Val nothing_to_do = size == 0;
    const Val high = maximum(abs(head), size), low = minimum(abs(head), size),
              share = low / where(high == 0, ones_like(high), high);
    const Val length = high * sqrt(1 + share * share), beta = where(head < 0, length, -length);
    const Val tau = where(nothing_to_do, zeros_like(head), (beta - head) / where(nothing_to_do, ones_like(beta), beta));
    const Val v = where(numbers == k, ones_like(column), rest / where(nothing_to_do, ones_like(head), head - beta));
    taus.push_back(reshape(tau, {a.size(0), 1}));
    const Val right = where(column_numbers(a) > k, reflected(a, v, tau), a);
    const Val own = where(numbers > k, v, where((numbers == k) & ~nothing_to_do, beta, column));
    a = where(column_numbers(a) == k, own, right);
  }
  return {a, cat(taus, 1)};
}

// The reflections' product, or its transpose, times x.
Val product_times(Val both, Val tau, Val x, bool transposed) {
  const int64_t count = tau.size(1);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = transposed ? i : count - 1 - i;
    x = reflected(x, vector_of(both, k), tau_of(tau, k));
  }
  return x;
}

Val ones_on_diagonal(Val zeros) {
  const Val x = batched(zeros);
  return reshape(x + identity(x), zeros.sizes());
}

// The first columns of the reflections' product.
Val columns_of_product(Val both, Val tau, int64_t columns) {
  const Val zeros = full(*both.builder, both.dtype(), {both.size(0), both.size(1), columns}, int64_t{0});
  return product_times(both, tau, ones_on_diagonal(zeros), false);
}

Results reflections(const Call& call) {
  const Val a = call.tensor("self");
  if (a.count() == 0) return zeros_of(call);
  if (!is_small(a)) return nothing();
  const Reflections r = reflections_of(batched(a));
  return {in_shape_of(call, 0, r.both), in_shape_of(call, 1, r.tau)};
}

Results qr(const Call& call) {
  const Val a = call.tensor("A");
  const std::string mode = call.string("mode");
  Results results = zeros_of(call);
  if (a.count() == 0) {
    if (mode == "complete" && call.wants(0)) results.values[0] = ones_on_diagonal(results.values[0]);
    return results;
  }
  if (!is_small(a)) return nothing();
  const Reflections r = reflections_of(batched(a));
  const int64_t rows = a.size(-2), kept = mode == "complete" ? rows : std::min(rows, a.size(-1));
  if (mode != "r" && call.wants(0)) results.values[0] = in_shape_of(call, 0, columns_of_product(r.both, r.tau, kept));
  results.values[1] = in_shape_of(call, 1, upper(slice(r.both, 1, 0, kept)));
  return results;
}

// tau without its batch's dims but one.
Val batched_vector(Val tau) { return reshape(tau, {-1, tau.size(-1)}); }

Results householder_product(const Call& call) {
  const Val both = call.tensor("input"), tau = call.tensor("tau");
  if (both.count() == 0) return zeros_of(call);
  if (!is_small(both)) return nothing();
  const Val wide = batched(both);
  const Val y = tau.count() ? columns_of_product(wide, batched_vector(tau), both.size(-1)) : ones_on_diagonal(zeros_like(wide));
  return reshape(y, call.result().sizes);
}

Results times_product(const Call& call) {
  const Val both = call.tensor("self"), tau = call.tensor("input2"), other = call.tensor("input3");
  if (other.count() == 0) return zeros_of(call);
  if (!is_small(both)) return nothing();
  const bool left = call.flag("left"), transposed = call.flag("transpose");
  const Val x = batched(other), wide = batched(both), taus = batched_vector(tau);
  const Val y = left ? product_times(wide, taus, x, transposed)
                     : matrix_transpose(product_times(wide, taus, matrix_transpose(x), !transposed));
  return reshape(y, call.result().sizes);
}

constexpr Decomposition kRules[] = {
    {"aten::geqrf", reflections},
    {"aten::linalg_qr", qr},
    {"aten::linalg_householder_product", householder_product},
    {"aten::ormqr", times_product},
};

}  // namespace

std::span<const Decomposition> orthogonal() { return kRules; }

}  // namespace ltc::decompose
