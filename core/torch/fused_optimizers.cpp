// The steps of PyTorch's fused optimizers as plain ops of each parameter: what fuses them is the plugin's compiler.
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <cmath>

#include "core/torch/tensor.h"

namespace ltc {
namespace {

using OptTensor = std::optional<at::Tensor>;
using Number = double;                // a learning rate
using OneTensor = const at::Tensor&;  // or one that is a tensor

// Half precisions are computed in float, as PyTorch's fused kernels do.
at::Tensor wide(const at::Tensor& tensor) {
  return at::isReducedFloatingType(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
}

// 1 - beta^step, exact for small steps in float too.
at::Tensor bias_correction(double beta, const at::Tensor& step) { return step.mul(std::log(beta)).expm1().neg(); }

// What torch.amp.GradScaler has to say of a step: by what the gradients are scaled, and whether to skip it.
class Scaling {
 public:
  Scaling(const OptTensor& scale, const OptTensor& found_inf) {
    if (scale && scale->defined()) scale_ = *scale;
    if (found_inf && found_inf->defined()) skip_ = found_inf->ne(0);
  }

  // The gradient to follow downhill. Unscales the stored one as well.
  at::Tensor gradient(const at::Tensor& stored, bool maximize) const {
    at::Tensor gradient = wide(stored);
    if (scale_.defined()) {
      gradient = gradient.div(scale_);
      store(stored, gradient);
    }
    return maximize ? gradient.neg() : gradient;
  }

  void store(const at::Tensor& to, const at::Tensor& value) const {
    to.copy_(skip_.defined() ? at::where(skip_, to, value) : value);
  }

 private:
  at::Tensor scale_, skip_;  // undefined: not scaled, never skipped
};

template <typename Lr, bool kDecoupled>
void fused_adam(at::TensorList params, at::TensorList grads, at::TensorList means, at::TensorList squares, at::TensorList peaks,
                at::TensorList steps, Lr lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad,
                bool maximize, const OptTensor& grad_scale, const OptTensor& found_inf) {
  const Scaling scaling(grad_scale, found_inf);
  for (size_t i = 0; i < params.size(); ++i) {
    at::Tensor param = wide(params[i]), gradient = scaling.gradient(grads[i], maximize);
    if (weight_decay != 0 && kDecoupled) param = param.sub(param.mul(lr).mul(weight_decay));
    if (weight_decay != 0 && !kDecoupled) gradient = gradient.add(param, weight_decay);
    const at::Tensor mean = wide(means[i]).lerp(gradient, 1 - beta1);
    const at::Tensor square = wide(squares[i]).mul(beta2).addcmul(gradient, gradient, 1 - beta2);
    const at::Tensor peak = amsgrad ? at::maximum(wide(peaks[i]), square) : square;
    const at::Tensor denominator = peak.sqrt().div(bias_correction(beta2, steps[i]).sqrt()).add(eps);
    const at::Tensor step_size = bias_correction(beta1, steps[i]).reciprocal().mul(lr);
    scaling.store(params[i], param.sub(mean.div(denominator).mul(step_size)));
    scaling.store(means[i], mean);
    scaling.store(squares[i], square);
    if (amsgrad) scaling.store(peaks[i], peak);
  }
}

template <typename Lr>
void fused_sgd(at::TensorList params, at::TensorList grads, at::TensorList momenta, double weight_decay, double momentum, Lr lr,
               double dampening, bool nesterov, bool maximize, bool is_first_step, const OptTensor& grad_scale,
               const OptTensor& found_inf) {
  const Scaling scaling(grad_scale, found_inf);
  for (size_t i = 0; i < params.size(); ++i) {
    const at::Tensor param = wide(params[i]);
    at::Tensor direction = scaling.gradient(grads[i], maximize);
    if (weight_decay != 0) direction = direction.add(param, weight_decay);
    if (momentum != 0) {
      const at::Tensor velocity = is_first_step ? direction : wide(momenta[i]).mul(momentum).add(direction, 1 - dampening);
      scaling.store(momenta[i], velocity);
      direction = nesterov ? direction.add(velocity, momentum) : velocity;
    }
    scaling.store(params[i], param.sub(direction.mul(lr)));
  }
}

template <typename Lr>
void fused_adagrad(at::TensorList params, at::TensorList grads, at::TensorList sums, at::TensorList steps, Lr lr, double lr_decay,
                   double weight_decay, double eps, bool maximize, const OptTensor& grad_scale, const OptTensor& found_inf) {
  const Scaling scaling(grad_scale, found_inf);
  for (size_t i = 0; i < params.size(); ++i) {
    const at::Tensor param = wide(params[i]);
    at::Tensor gradient = scaling.gradient(grads[i], maximize);
    if (weight_decay != 0) gradient = gradient.add(param, weight_decay);
    const at::Tensor sum = wide(sums[i]).addcmul(gradient, gradient);
    const at::Tensor step_size = steps[i].sub(1).mul(lr_decay).add(1).reciprocal().mul(lr);
    scaling.store(params[i], param.sub(gradient.div(sum.sqrt().add(eps)).mul(step_size)));
    scaling.store(sums[i], sum);
  }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fused_adam_", fused_adam<Number, false>);
  m.impl("_fused_adam_.tensor_lr", fused_adam<OneTensor, false>);
  m.impl("_fused_adamw_", fused_adam<Number, true>);
  m.impl("_fused_adamw_.tensor_lr", fused_adam<OneTensor, true>);
  m.impl("_fused_sgd_", fused_sgd<Number>);
  m.impl("_fused_sgd_.tensor_lr", fused_sgd<OneTensor>);
  m.impl("_fused_adagrad_", fused_adagrad<Number>);
  m.impl("_fused_adagrad_.tensor_lr", fused_adagrad<OneTensor>);
}

}  // namespace
}  // namespace ltc
