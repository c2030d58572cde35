#include "adadelta.h"

namespace {

constexpr double kRho = 0.9;
constexpr double kEpsilon = 1e-6;

}  // namespace

Adadelta::Adadelta(std::vector<torch::Tensor> parameters, double lr) : lr(lr) {
  for (torch::Tensor& parameter : parameters) {
    slots_.push_back({parameter, torch::zeros_like(parameter), torch::zeros_like(parameter)});
  }
}

void Adadelta::zero_grad() {
  for (Slot& slot : slots_) slot.parameter.mutable_grad().reset();
}

void Adadelta::step() {
  torch::NoGradGuard no_grad;
  for (auto& [parameter, square_average, update_average] : slots_) {
    const torch::Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    square_average.mul_(kRho).addcmul_(grad, grad, 1 - kRho);
    const torch::Tensor deviation = square_average.add(kEpsilon).sqrt_();
    const torch::Tensor update = update_average.add(kEpsilon).sqrt_().div_(deviation).mul_(grad);
    update_average.mul_(kRho).addcmul_(update, update, 1 - kRho);
    parameter.add_(update, -lr);
  }
}
