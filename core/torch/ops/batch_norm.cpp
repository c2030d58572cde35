// native_batch_norm writes its running statistics although its schema does not say so; that of _native_batch_norm_legit does.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_native_batch_norm_legit.h>
#include <torch/library.h>

#include "core/torch/tensor/tensor.h"

namespace ltc {
namespace {

using OptTensor = std::optional<at::Tensor>;

bool has_statistics(const OptTensor& mean, const OptTensor& var) { return mean && mean->defined() && var && var->defined(); }

std::tuple<at::Tensor, at::Tensor, at::Tensor> native_batch_norm(const at::Tensor& input, const OptTensor& weight,
                                                                 const OptTensor& bias, const OptTensor& running_mean,
                                                                 const OptTensor& running_var, bool training, double momentum,
                                                                 double eps) {
  if (!has_statistics(running_mean, running_var))
    return at::_native_batch_norm_legit(input, weight, bias, training, momentum, eps);
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

std::tuple<at::Tensor&, at::Tensor&, at::Tensor&> native_batch_norm_out(const at::Tensor& input, const OptTensor& weight,
                                                                        const OptTensor& bias, const OptTensor& running_mean,
                                                                        const OptTensor& running_var, bool training,
                                                                        double momentum, double eps, at::Tensor& out,
                                                                        at::Tensor& save_mean, at::Tensor& save_invstd) {
  if (!has_statistics(running_mean, running_var)) {
    return at::_native_batch_norm_legit_outf(input, weight, bias, training, momentum, eps, out, save_mean, save_invstd);
  }
  at::Tensor mean = *running_mean, var = *running_var;
  return at::_native_batch_norm_legit_outf(input, weight, bias, mean, var, training, momentum, eps, out, save_mean, save_invstd);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("native_batch_norm", native_batch_norm);
  m.impl("native_batch_norm.out", native_batch_norm_out);
}

}  // namespace
}  // namespace ltc
