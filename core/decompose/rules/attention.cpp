// Attention, whole and backward: the scores of all pairs, in two products of matrices.
#include <cmath>
#include <limits>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// [batch, heads, rows, columns] as a batch of matrices; key and value have fewer heads where queries share them.
Val matrices(Val x, int64_t heads) {
  const int64_t batch = x.size(0), own = x.size(1), rows = x.size(2), columns = x.size(3);
  if (own != heads) x = expand(reshape(x, {batch, own, 1, rows, columns}), {batch, own, heads / own, rows, columns});
  return reshape(x, {batch * heads, rows, columns});
}

// The reverse for gradients.
Val summed_heads(Val g, const Val& x, int64_t heads) {
  const int64_t batch = x.size(0), own = x.size(1);
  return reshape(sum(reshape(g, {batch, own, heads / own, x.size(2), x.size(3)}), {2}), x.sizes());
}

struct Attention {
  Val q, k, v;  // matrices
  int64_t batch, heads, rows, columns;
  double scale;
};
Attention operands(const Call& call) {
  const Val q = call.math("query"), k = call.math("key"), v = call.math("value");
  const int64_t heads = q.size(1);
  const auto given = call.given("scale") ? call.constant("scale") : std::nullopt;
  return {matrices(q, heads),
          matrices(k, heads),
          matrices(v, heads),
          q.size(0),
          heads,
          q.size(2),
          k.size(2),
          given.value_or(1 / std::sqrt(static_cast<double>(q.size(3))))};
}

Val scores(const Call& call, const Attention& a) {
  const Ints apart = {a.batch, a.heads, a.rows, a.columns};
  Val s = reshape(bmm(a.q, transpose(a.k, 1, 2)) * a.scale, apart);
  if (call.flag("is_causal")) {
    const Val row = reshape(iota(call.builder(), a.rows), {a.rows, 1}),
              column = reshape(iota(call.builder(), a.columns), {1, a.columns});
    s = where(column <= row, s, -kInf);
  }
  if (const Val mask = call.math("attn_mask"))
    s = mask.dtype() == DType::kBool ? where(mask, s, -kInf) : s + cast(mask, s.dtype());
  return reshape(s, {a.batch * a.heads, a.rows, a.columns});
}

// A row that is -inf throughout gives zeros.
Results attention(const Call& call) {
  const Attention a = operands(call);
  if (call.any_result().element_count == 0 || a.columns == 0) return nothing();
  const Val s = scores(call, a), peak = amax(s, {2}, true), shift = where(peak == -kInf, zeros_like(peak), peak);
  const Val e = exp(s - shift), total = sum(e, {2}, true), divisor = where(total == 0, ones_like(total), total);
  const Val y = bmm(e / divisor, a.v);
  const Val log_sum = reshape(shift + log(total), {a.batch, a.heads, a.rows});
  return {reshape(y, {a.batch, a.heads, a.rows, a.v.size(2)}), log_sum};
}

Results attention_backward(const Call& call) {
  const Attention a = operands(call);
  if (call.any_result().element_count == 0 || a.rows == 0) return nothing();
  const Val g = matrices(call.math("grad_out"), a.heads), y = matrices(call.math("out"), a.heads);
  const Val log_sum = reshape(call.math("logsumexp"), {a.batch * a.heads, a.rows, 1});
  const Val weights = where(log_sum == -kInf, zeros_like(log_sum), exp(scores(call, a) - log_sum));
  const Val of_scores = weights * (bmm(g, transpose(a.v, 1, 2)) - sum(g * y, {2}, true)) * a.scale;
  const auto summed = [&](Val gradient, const char* name) { return summed_heads(gradient, call.tensor(name), a.heads); };
  return {summed(bmm(of_scores, a.k), "query"), summed(bmm(transpose(of_scores, 1, 2), a.q), "key"),
          summed(bmm(transpose(weights, 1, 2), g), "value")};
}

constexpr Decomposition kRules[] = {
    {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward},
};

}  // namespace

std::span<const Decomposition> attentions() { return kRules; }

}  // namespace ltc::decompose
