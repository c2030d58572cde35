// Products of matrices and vectors, through bmm; softmax; the exponential of a matrix.
#include <limits>
#include <numbers>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

Results mm(const Call& call) { return matmul2(call.math("self"), call.math("mat2")); }

Results mv(const Call& call) { return reshape(matmul2(call.math("self"), unsqueeze(call.math("vec"), 1)), call.result().sizes); }

Results dot(const Call& call) { return sum(call.math("self") * call.math("tensor"), {}); }
Results vdot(const Call& call) { return sum(call.math("self") * call.math("other"), {}); }

// beta * self + alpha * product; with a beta of 0 what self holds, NaN too, does not count.
Val add_product(const Call& call, Val product) {
  const DType dtype = product.dtype();
  if (!call.is_constant("alpha", 1)) product = product * cast(call.number("alpha"), dtype);
  const Val x = call.math("self");
  if (call.is_constant("beta", 1)) return product + x;
  if (call.is_constant("beta", 0)) return product;
  const Val beta = cast(call.number("beta"), dtype);
  return product + where(beta == 0, zeros_like(x), beta * x);
}

Results addmm(const Call& call) { return add_product(call, matmul2(call.math("mat1"), call.math("mat2"))); }
Results addmv(const Call& call) {
  const Val product = matmul2(call.math("mat"), unsqueeze(call.math("vec"), 1));
  return add_product(call, squeeze(product, 1));
}
Results addr(const Call& call) { return add_product(call, unsqueeze(call.math("vec1"), 1) * unsqueeze(call.math("vec2"), 0)); }
Results baddbmm(const Call& call) { return add_product(call, bmm(call.math("batch1"), call.math("batch2"))); }
// The batch is one more part of the dim that is summed over.
Results addbmm(const Call& call) {
  const Val a = call.math("batch1"), b = call.math("batch2");
  const int64_t inner = a.size(0) * a.size(2);
  return add_product(call, matmul2(reshape(permute(a, {1, 0, 2}), {a.size(1), inner}), reshape(b, {inner, b.size(2)})));
}

Results softmax_along(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  if (x.count() == 0) return x;
  return x.rank() ? softmax(x, call.integer("dim")) : ones_like(x);
}

// A row that is -inf throughout gives zeros.
Results safe_softmax(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  if (x.count() == 0) return x;
  const int64_t dim = call.integer("dim");
  const Val lost = amax(x, {dim}, true) == -std::numeric_limits<double>::infinity();
  return where(lost, zeros_like(x), softmax(x, dim));
}

Results log_softmax(const Call& call) {
  const Val x = cast(call.tensor("self"), math_dtype(call.result().dtype));
  if (x.count() == 0) return x;
  if (!x.rank()) return zeros_like(x);
  const int64_t dim = call.integer("dim");
  const Val shifted = x - amax(x, {dim}, true);
  return shifted - log(sum(exp(shifted), {dim}, true));
}

Results softmax_backward(const Call& call) {
  const Val g = call.math("grad_output"), y = call.math("output");
  if (g.count() == 0) return g;
  return y * (g - sum(g * y, {call.integer("dim")}, true));
}
Results log_softmax_backward(const Call& call) {
  const Val g = call.math("grad_output"), y = call.math("output");
  if (g.count() == 0) return g;
  return g - exp(y) * sum(g, {call.integer("dim")}, true);
}

// The exponential's series for the matrix halved until its norm is small, squared as often. Each squaring doubles the error, so
// it is as small as the terms need for the type's precision: Bader, Blanes, Casas, Computing the matrix exponential with an
// optimized Taylor polynomial approximation (2019).
Results matrix_exponential(const Call& call) {
  constexpr int kTerms = 18, kHalvings = 24;
  const Val a = call.math("self");
  if (a.count() == 0) return a;
  const int64_t n = a.size(-1);
  Val x = reshape(a, {-1, n, n});
  const Val norm = amax(sum(abs(x), {1}, true), {2}, true);
  const double small = x.dtype() == DType::kF64 ? 1.09 : 3.01;
  const Val halvings = minimum(maximum(ceil(log(norm / small) * std::numbers::log2e), 0), kHalvings);
  x = x * pow(full_like(halvings, 2), -halvings);
  const Val identity = cast(reshape(iota(call.builder(), n), {n, 1}) == iota(call.builder(), n), x.dtype());
  Val series = expand(reshape(identity, {1, n, n}), x.sizes());
  for (int term = kTerms; term > 0; --term) series = bmm(x, series) / term + identity;
  for (int i = 0; i < kHalvings; ++i) series = where(halvings > i, bmm(series, series), series);
  return reshape(series, a.sizes());
}

constexpr Decomposition kRules[] = {
    {"aten::mm", mm},
    {"aten::mv", mv},
    {"aten::dot", dot},
    {"aten::vdot", vdot},
    {"aten::addmm", addmm},
    {"aten::addmv", addmv},
    {"aten::addr", addr},
    {"aten::baddbmm", baddbmm},
    {"aten::addbmm", addbmm},
    {"aten::_softmax", softmax_along},
    {"aten::_safe_softmax", safe_softmax},
    {"aten::_log_softmax", log_softmax},
    {"aten::_softmax_backward_data", softmax_backward},
    {"aten::_log_softmax_backward_data", log_softmax_backward},
    {"aten::linalg_matrix_exp", matrix_exponential},
};

}  // namespace

std::span<const Decomposition> linear_algebra() { return kRules; }

}  // namespace ltc::decompose
