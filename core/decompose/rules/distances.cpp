// Norms of differences, and products of three.
#include <limits>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Val between(Val x, Val y) { return unsqueeze(x, -2) - unsqueeze(y, -3); }

// How the p-norm `distance` of `x` moves with x's elements; 0 where it is 0.
Val norm_slope(Val x, double p, Val distance) {
  if (p == 0) return zeros_like(x);
  if (p == 1) return sign(x);
  const Val zero = distance == 0;
  if (p == kInf) return sign(x) * cast((abs(x) == distance) & ~zero, x.dtype());
  if (p == 2) return where(zero, zeros_like(x), x / distance);
  const Val slope = sign(x) * pow(abs(x) / distance, full_like(x, p - 1));
  return where(zero | ((x == 0) & (p < 1 ? zero == zero : zero)), zeros_like(x), slope);
}

Results cross_distances(const Call& call) {
  const Val x = call.math("x1"), y = call.math("x2");
  if (x.count() == 0 || y.count() == 0) return zeros_of(call);
  return p_norm(between(x, y), {-1}, false, call.constant("p"), call.number("p"));
}
Results cross_distances_backward(const Call& call) {
  const Val x = call.math("x1"), y = call.math("x2"), g = unsqueeze(call.math("grad"), -1);
  if (x.count() == 0 || y.count() == 0) return zeros_of(call);
  const Val slope = norm_slope(between(x, y), *call.constant("p"), unsqueeze(call.math("cdist"), -1));
  return reshape(sum(g * slope, {-2}), call.result().sizes);
}

// Places, in the row-major matrix of all pairs of n, of those with the smaller number first.
Val pairs(Builder& b, int64_t n) {
  const Val row = reshape(iota(b, n), {n, 1}), column = reshape(iota(b, n), {1, n});
  const Val rank = cumsum(cast(reshape(row < column, {-1}), DType::kI64), 0) - 1;  // of those above the diagonal
  const Val at = where(reshape(row < column, {-1}), rank, full(b, DType::kI64, {n * n}, n * (n - 1) / 2));
  const Val none = full(b, DType::kI64, {n * (n - 1) / 2 + 1}, int64_t{0});
  return slice(scatter_add(none, 0, at, iota(b, n * n)), 0, 0, n * (n - 1) / 2);
}

Results own_distances(const Call& call) {
  const Val x = call.math("self");
  if (call.result().element_count == 0 || x.count() == 0) return zeros_of(call);
  const Val all = p_norm(between(x, x), {-1}, false, call.constant("p"), call.number("p"));
  return gather(reshape(all, {-1}), 0, pairs(call.builder(), x.size(0)));
}
Results own_distances_backward(const Call& call) {
  const Val x = call.math("self"), g = call.math("grad");
  const int64_t n = x.size(0);
  if (x.count() == 0 || g.count() == 0) return zeros_of(call);
  const Val at = pairs(call.builder(), n), zeros = full(call.builder(), x.dtype(), {n * n}, int64_t{0});
  const auto symmetric = [&](Val v) {
    const Val upper = reshape(scatter(zeros, 0, at, v), {n, n});
    return reshape(upper + transpose(upper, 0, 1), {n, n, 1});
  };
  return sum(symmetric(g) * norm_slope(between(x, x), *call.constant("p"), symmetric(call.math("pdist"))), {1});
}

// Slices along a dim whose norm exceeds maxnorm are scaled down to it.
Results renormalize(const Call& call) {
  const Val x = call.math("self"), most = cast(call.number("maxnorm"), x.dtype());
  if (x.count() == 0) return x;
  const Val norm = p_norm(x, dims_but(x, call.integer("dim")), true, call.constant("p"), call.number("p"));
  return x * where(norm > most, most / (norm + 1e-7), ones_like(norm));
}

Results cross_product(const Call& call) {
  const DType dtype = math_dtype(call.result().dtype);
  const Val a = cast(call.tensor("self"), dtype), b = cast(call.tensor("other"), dtype);
  const int64_t dim = call.integer("dim");
  const auto rolled = [&](Val v, int64_t by) { return cat({slice(v, dim, by, 3), slice(v, dim, 0, by)}, dim); };
  return rolled(a, 1) * rolled(b, 2) - rolled(a, 2) * rolled(b, 1);
}

Results product_of_three(const Call& call) {
  const auto expanded = [&](const char* name, const char* dims) {
    Val x = call.math(name);
    for (const int64_t dim : call.ints(dims)) x = unsqueeze(x, dim);
    return x;
  };
  const Val product = expanded("i1", "expand1") * expanded("i2", "expand2") * expanded("i3", "expand3");
  const Ints dims = call.ints("sumdim");
  return dims.empty() ? product : sum(product, dims);
}

constexpr Decomposition kRules[] = {
    {"aten::_cdist_forward", cross_distances},
    {"aten::_cdist_backward", cross_distances_backward},
    {"aten::_pdist_forward", own_distances},
    {"aten::_pdist_backward", own_distances_backward},
    {"aten::renorm", renormalize},
    {"aten::linalg_cross", cross_product},
    {"aten::_trilinear", product_of_three},
};

}  // namespace

std::span<const Decomposition> distances() { return kRules; }

}  // namespace ltc::decompose
