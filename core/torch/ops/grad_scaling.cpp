// The ops of torch.amp.GradScaler, recorded: a step reads nothing but the answer that the scaler itself asks for.
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <limits>

#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void check_and_unscale(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inverse_scale) {
  for (const at::Tensor& gradient : gradients) {
    if (gradient.numel() == 0) continue;
    found_inf.masked_fill_(gradient.abs().amax().lt(kInfinity).logical_not(), 1);  // nan is not less either
    gradient.mul_(inverse_scale);
  }
}

at::Tensor& update_scale(at::Tensor& scale, at::Tensor& growth_tracker, const at::Tensor& found_inf, double growth,
                         double backoff, int64_t interval) {
  const at::Tensor failed = found_inf.ne(0), successful = growth_tracker.add(1), due = successful.eq(interval);
  const at::Tensor grown = scale.mul(growth);
  const at::Tensor next = at::where(due.logical_and(grown.lt(kInfinity)), grown, scale);
  scale.copy_(at::where(failed, scale.mul(backoff), next));
  growth_tracker.copy_(successful.masked_fill(failed.logical_or(due), 0));
  return scale;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_amp_foreach_non_finite_check_and_unscale_", check_and_unscale);
  m.impl("_amp_update_scale_", update_scale);
}

}  // namespace
}  // namespace ltc
