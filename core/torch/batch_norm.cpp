// native_batch_norm writes its running statistics although its schema does not say so.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <torch/library.h>

#include "core/torch/tensor.h"

namespace ltc {
namespace {

using OptTensor = std::optional<at::Tensor>;

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input, const OptTensor& weight,
                                                                 const OptTensor& bias, const OptTensor& running_mean,
                                                                 const OptTensor& running_var, bool training, double momentum,
                                                                 double eps) {
  const bool has_statistics = running_mean && running_mean->defined() && running_var && running_var->defined();
  if (!has_statistics) return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
  using Functional = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>(
      const at::Tensor&, const OptTensor&, const OptTensor&, const at::Tensor&, const at::Tensor&, bool, double, double);
  static const auto functional =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::_native_batch_norm_legit_functional", "").typed<Functional>();
  auto [output, mean, inverse_std, new_mean, new_var] =
      functional.call(input, weight, bias, *running_mean, *running_var, training, momentum, eps);
  if (training) {
    running_mean->copy_(new_mean);
    running_var->copy_(new_var);
  }
  return {std::move(output), std::move(mean), std::move(inverse_std)};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { m.impl("native_batch_norm", native_batch_norm); }

}  // namespace
}  // namespace ltc
