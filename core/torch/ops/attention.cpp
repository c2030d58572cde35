// scaled_dot_product_attention takes the way that PyTorch takes on the CPU: the fused op where its kernel can, else the
// composite.
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_cpu_dispatch.h>
#include <torch/library.h>

namespace ltc {
namespace {

using at::Tensor;

// The CPU's choice looks at sizes, strides and dtypes only.
int64_t choose_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                         double dropout, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  return at::cpu::_fused_sdp_choice(query, key, value, mask, dropout, is_causal, scale, enable_gqa);
}

// nn.TransformerEncoder asks whether it may leave out padding with nested tensors, which this device does not have.
bool can_nest(const Tensor& /*tensor*/, const Tensor& /*mask*/) { return false; }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_sdp_choice", choose_attention);
  m.impl("_nested_tensor_from_mask_left_aligned", can_nest);
}

}  // namespace
}  // namespace ltc

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &ltc::choose_attention)
}
