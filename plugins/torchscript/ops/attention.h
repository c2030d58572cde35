// Attention of float32, forward and backward, by blocks of queries and keys whose scores stay in the cache.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace ltc::torchscript {

// As aten::_scaled_dot_product_flash_attention_for_cpu and its backward, in values and layouts; to these goes everything else. A
// block of queries of one head, backward a head, is one thread's, so results do not depend on the number of threads.
std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                             double dropout_p, bool is_causal, const std::optional<at::Tensor>& attn_mask,
                                             std::optional<double> scale);
std::tuple<at::Tensor, at::Tensor, at::Tensor> attention_backward(const at::Tensor& grad_out, const at::Tensor& query,
                                                                  const at::Tensor& key, const at::Tensor& value,
                                                                  const at::Tensor& out, const at::Tensor& logsumexp,
                                                                  double dropout_p, bool is_causal,
                                                                  const std::optional<at::Tensor>& attn_mask,
                                                                  std::optional<double> scale);

}  // namespace ltc::torchscript
