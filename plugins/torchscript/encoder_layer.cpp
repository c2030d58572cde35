#include "encoder_layer.h"

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_transformer_encoder_layer_fwd.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/relu.h>

#include <algorithm>

#include "products.h"
#include "rows.h"

namespace ltc::torchscript {
namespace {

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return multiply_and_add(bias, x, weight.t(), 1, 1);
}

// Rows of x: what each step sees of its sequence.
at::Tensor attend(const at::Tensor& x, int64_t batch, int64_t heads, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t width = x.size(1);
  const at::Tensor all = linear(x, weight, bias).view({batch, x.size(0) / batch, 3, heads, width / heads}).transpose(1, 3);
  const at::Tensor seen =
      std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(all.select(2, 0), all.select(2, 1), all.select(2, 2)));
  return seen.transpose(1, 2).reshape({-1, width});
}

}  // namespace

at::Tensor transformer_encoder_layer_fwd(const at::Tensor& src, int64_t embed_dim, int64_t num_heads,
                                         const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, const at::Tensor& proj_weight,
                                         const at::Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
                                         const at::Tensor& norm_weight_1, const at::Tensor& norm_bias_1,
                                         const at::Tensor& norm_weight_2, const at::Tensor& norm_bias_2,
                                         const at::Tensor& ffn_weight_1, const at::Tensor& ffn_bias_1,
                                         const at::Tensor& ffn_weight_2, const at::Tensor& ffn_bias_2,
                                         const std::optional<at::Tensor>& mask, std::optional<int64_t> mask_type) {
  const bool is_ours = !(mask && mask->defined()) && src.scalar_type() == at::kFloat && src.dim() == 3 && src.numel() > 0 &&
                       src.size(2) == embed_dim && num_heads > 0 && embed_dim % num_heads == 0;
  if (!is_ours) {
    return at::_transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
                                              norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2,
                                              ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask, mask_type);
  }
  const auto norm = [&](const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
    return std::get<0>(torchscript::native_layer_norm(x, {embed_dim}, weight, bias, eps));
  };
  at::Tensor x = src.reshape({-1, embed_dim});
  const at::Tensor seen = norm_first ? norm(x, norm_weight_1, norm_bias_1) : x;
  x = linear(attend(seen, src.size(0), num_heads, qkv_weight, qkv_bias), proj_weight, proj_bias).add_(x);
  if (!norm_first) x = norm(x, norm_weight_1, norm_bias_1);
  at::Tensor inner = linear(norm_first ? norm(x, norm_weight_2, norm_bias_2) : x, ffn_weight_1, ffn_bias_1);
  use_gelu ? at::gelu_(inner) : at::relu_(inner);
  x = linear(inner, ffn_weight_2, ffn_bias_2).add_(x);
  if (!norm_first) x = norm(x, norm_weight_2, norm_bias_2);
  return x.view(src.sizes());
}

}  // namespace ltc::torchscript
