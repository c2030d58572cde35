#pragma once
#include <ATen/core/Tensor.h>

namespace ltc::torchscript {

// As aten::_transformer_encoder_layer_fwd. ATen's multiplies queries and keys head by head and writes out all scores.
at::Tensor transformer_encoder_layer_fwd(const at::Tensor& src, int64_t embed_dim, int64_t num_heads,
                                         const at::Tensor& qkv_weight, const at::Tensor& qkv_bias, const at::Tensor& proj_weight,
                                         const at::Tensor& proj_bias, bool use_gelu, bool norm_first, double eps,
                                         const at::Tensor& norm_weight_1, const at::Tensor& norm_bias_1,
                                         const at::Tensor& norm_weight_2, const at::Tensor& norm_bias_2,
                                         const at::Tensor& ffn_weight_1, const at::Tensor& ffn_bias_1,
                                         const at::Tensor& ffn_weight_2, const at::Tensor& ffn_bias_2,
                                         const std::optional<at::Tensor>& mask, std::optional<int64_t> mask_type);

}  // namespace ltc::torchscript
