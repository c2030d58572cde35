#include "torchscript/ops/encoder_layer.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_transformer_encoder_layer_fwd.h>
#include <ATen/ops/gelu.h>

#include <algorithm>

#include "torchscript/ops/attention.h"
#include "torchscript/ops/products.h"
#include "torchscript/ops/rows.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

struct Linear {
  const at::Tensor &weight, &bias;
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& other = {}, bool relu = false) const {
    at::Tensor made = multiply_matrices(x, weight.t());
    add_to_rows(made, bias, other, relu);
    return made;
  }
};

// Whether it gives `outputs` numbers per row; of the inputs the product is the judge.
bool fits(const Linear& linear, int64_t outputs) {
  return linear.weight.dim() == 2 && linear.weight.size(0) == outputs && is_plain(linear.bias) && linear.bias.numel() == outputs;
}

struct Norm {
  const at::Tensor &weight, &bias;
  double eps;
  at::Tensor operator()(const at::Tensor& x) const {
    return std::get<0>(torchscript::native_layer_norm(x, {x.size(1)}, weight, bias, eps));
  }
};

struct Layer {
  int64_t heads;
  bool use_gelu, norm_first;
  Linear in, out, up, down;
  Norm norm_1, norm_2;

  // Rows of x: what each step sees of its sequence.
  at::Tensor attend(const at::Tensor& x, const at::Tensor& other, int64_t steps) const {
    const int64_t width = x.size(1);
    const at::Tensor all = in(x).view({x.size(0) / steps, steps, 3, heads, width / heads}).transpose(1, 3);
    const at::Tensor seen = std::get<0>(attention(all.select(2, 0), all.select(2, 1), all.select(2, 2), 0, false, {}, {}));
    return out(seen.transpose(1, 2).reshape({-1, width}), other);
  }

  at::Tensor operator()(const at::Tensor& src) const {
    const at::Tensor given = src.reshape({-1, src.size(2)});
    at::Tensor x = attend(norm_first ? norm_1(given) : given, given, src.size(1));
    if (!norm_first) x = norm_1(x);
    at::Tensor inner = up(norm_first ? norm_2(x) : x, {}, !use_gelu);
    if (use_gelu) at::gelu_(inner);
    x = down(inner, x);
    if (!norm_first) x = norm_2(x);
    return x.view(src.sizes());
  }
};

}  // namespace

at::Tensor transformer_encoder_layer_fwd(const at::Tensor& src, int64_t embed_dim, int64_t num_heads,
                                         const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, const at::Tensor& proj_weight,
                                         const at::Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
                                         const at::Tensor& norm_weight_1, const at::Tensor& norm_bias_1,
                                         const at::Tensor& norm_weight_2, const at::Tensor& norm_bias_2,
                                         const at::Tensor& ffn_weight_1, const at::Tensor& ffn_bias_1,
                                         const at::Tensor& ffn_weight_2, const at::Tensor& ffn_bias_2,
                                         const std::optional<at::Tensor>& mask, std::optional<int64_t> mask_type) {
  const Layer layer{num_heads,
                    use_gelu,
                    norm_first,
                    {qkv_weight, qkv_bias},
                    {proj_weight, proj_bias},
                    {ffn_weight_1, ffn_bias_1},
                    {ffn_weight_2, ffn_bias_2},
                    {norm_weight_1, norm_bias_1, eps},
                    {norm_weight_2, norm_bias_2, eps}};
  const bool is_ours = !(mask && mask->defined()) && is_plain(src) && src.dim() == 3 && src.size(2) == embed_dim &&
                       num_heads > 0 && embed_dim % num_heads == 0 && fits(layer.in, 3 * embed_dim) &&
                       fits(layer.out, embed_dim) && fits(layer.up, ffn_bias_1.numel()) && fits(layer.down, embed_dim);
  if (!is_ours) {
    return at::_transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
                                              norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2,
                                              ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask, mask_type);
  }
  // Each thread has its sequences: to wake another once is enough, and what the steps pass on stays in its cache. One chunk for
  // each, as products of fewer rows are slower: 128 rows at once take 1.2 of the time per row of 256.
  const int64_t batch = src.size(0), chunks = std::min<int64_t>(batch, most_threads());
  if (chunks == 1) return layer(src);
  at::Tensor made(at::detail::empty_cpu(src.sizes(), at::kFloat));
  for_each_chunk(chunks, [&](int64_t i) {
    const int64_t begin = batch * i / chunks, count = batch * (i + 1) / chunks - begin;
    made.narrow(0, begin, count).copy_(layer(src.narrow(0, begin, count)));
  });
  return made;
}

}  // namespace ltc::torchscript
