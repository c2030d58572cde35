// The fused forms of nn.MultiheadAttention and nn.TransformerEncoderLayer in eval mode.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/decompose/rules/families.h"
#include "core/decompose/support/normalize.h"

namespace ltc::decompose {
namespace {

// x W^T + b over the last dim.
Val linear(Val x, Val weight, Val bias) {
  Ints sizes = x.sizes();
  sizes.back() = weight.size(0);
  return reshape(matmul2(reshape(x, {-1, x.size(-1)}), transpose(weight, 0, 1)), sizes) + bias;
}

// [batch, steps, width] -> [batch * heads, steps, width of a head].
Val by_head(Val x, int64_t heads) {
  const int64_t batch = x.size(0), steps = x.size(1), each = x.size(2) / heads;
  return reshape(permute(reshape(x, {batch, steps, heads, each}), {0, 2, 1, 3}), {batch * heads, steps, each});
}

// A mask is by pairs of steps, by steps of each sequence, or by score. True, or any number but 0, hides a step.
Val wide_mask(const Call& call, const Ints& scores) {
  constexpr int64_t kPairs = 0, kSteps = 1;
  Val mask = call.tensor("mask");
  if (!mask) return {};
  mask = logical_not(logical_not(mask));
  const int64_t type = call.given("mask_type") ? call.integer("mask_type") : 2;
  if (type == kPairs) return expand(reshape(mask, {1, 1, scores[2], scores[3]}), scores);
  if (type == kSteps) return expand(reshape(mask, {scores[0], 1, 1, scores[3]}), scores);
  return expand(mask, scores);
}

struct Attended {
  Val y;        // [batch, steps, width]
  Val weights;  // [batch, heads, steps, steps]
};
Attended attend(const Call& call, Val query, Val key, Val value, int64_t heads) {
  const Val weight = call.math("qkv_weight"), bias = call.math("qkv_bias");
  const int64_t batch = query.size(0), width = query.size(2);
  const auto part = [&](Val x, int64_t i) {
    return by_head(linear(x, slice(weight, 0, i * width, (i + 1) * width), slice(bias, 0, i * width, (i + 1) * width)), heads);
  };
  const Val q = part(query, 0) / std::sqrt(static_cast<double>(width / heads)), k = part(key, 1), v = part(value, 2);
  const Ints apart = {batch, heads, q.size(1), k.size(1)};
  Val scores = reshape(bmm(q, transpose(k, 1, 2)), apart);
  if (const Val mask = wide_mask(call, apart)) scores = where(mask, -std::numeric_limits<double>::infinity(), scores);
  const Val weights = softmax(scores, -1), seen = bmm(reshape(weights, {batch * heads, apart[2], apart[3]}), v);
  const Val joined = reshape(permute(reshape(seen, {batch, heads, apart[2], width / heads}), {0, 2, 1, 3}), query.sizes());
  return {linear(joined, call.math("proj_weight"), call.math("proj_bias")), weights};
}

Results multi_head_attention(const Call& call) {
  const Val query = call.math("query");
  if (query.count() == 0 || call.tensor("key").count() == 0) return nothing();
  const Attended a = attend(call, query, call.math("key"), call.math("value"), call.integer("num_head"));
  const bool averaged = call.flag("need_weights") && call.flag("average_attn_weights");
  return {a.y, averaged ? mean(a.weights, {1}) : a.weights};
}

Results encoder_layer(const Call& call) {
  const Val x = call.math("src"), eps = call.number("eps");
  if (x.count() == 0) return x;
  const bool norm_first = call.flag("norm_first");
  const auto norm = [&](Val v, const char* weight, const char* bias) {
    return normalize(v, {-1}, eps).y * call.math(weight) + call.math(bias);
  };
  const auto first_norm = [&](Val v) { return norm(v, "norm_weight_1", "norm_bias_1"); };
  const auto second_norm = [&](Val v) { return norm(v, "norm_weight_2", "norm_bias_2"); };
  const auto feed_forward = [&](Val v) {
    const Val inner = linear(v, call.math("ffn_weight_1"), call.math("ffn_bias_1"));
    const Val bent = call.flag("use_gelu") ? inner * 0.5 * (1 + erf(inner * (1 / std::numbers::sqrt2))) : maximum(inner, 0);
    return linear(bent, call.math("ffn_weight_2"), call.math("ffn_bias_2"));
  };
  const Val seen = norm_first ? first_norm(x) : x;
  Val y = x + attend(call, seen, seen, seen, call.integer("num_heads")).y;
  if (!norm_first) y = first_norm(y);
  y = y + feed_forward(norm_first ? second_norm(y) : y);
  return norm_first ? y : second_norm(y);
}

constexpr Decomposition kRules[] = {
    {"aten::_native_multi_head_attention", multi_head_attention},
    {"aten::_transformer_encoder_layer_fwd", encoder_layer},
};

}  // namespace

std::span<const Decomposition> transformers() { return kRules; }

}  // namespace ltc::decompose
