#include "core/torch/dispatch/warm_up.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/function.h>

#include "core/base/log.h"
#include "core/run/device/capture.h"
#include "core/torch/dispatch/gradient_node.h"
#include "core/torch/tensor/tensor.h"
#include "core/torch/tensor/thread_state.h"

namespace ltc {
namespace {

using torch::autograd::variable_list;

// A layer with the views that most models have between layers.
at::Tensor record_forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor hidden = at::linear(x, weight, bias).relu();
  const at::Tensor turned = hidden.reshape({4, 2, 2}).transpose(0, 1).contiguous().view({2, 8});
  const at::Tensor joined = at::cat({turned.slice(1, 0, 4), turned.slice(1, 4, 8)});
  const at::Tensor scaled = joined.softmax(-1) * joined + bias;
  return at::mse_loss(at::addmm(bias, scaled, weight.t()).mean(0), bias.detach());
}

// The node that a gradient goes on to, with that gradient; null at a leaf. Other paths end here.
GradientNode next_node(const torch::autograd::Node& node, variable_list& gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto& edge = node.next_edge(i);
    const bool goes_on = edge.is_valid() && edge.function->num_inputs() == 1 && !edge.function->next_edges().empty();
    if (!goes_on || !gradients[i].defined()) continue;
    gradients = {gradients[i]};
    return edge.function;
  }
  return nullptr;
}

// Along one path, and not by PyTorch's engine, which would start threads.
void record_backward(const at::Tensor& loss) {
  variable_list gradients{at::ones_like(loss)};
  for (GradientNode node = loss.grad_fn(); node; node = next_node(*node, gradients)) gradients = (*node)(std::move(gradients));
}

void record_step(LazyDevice& device) {
  const at::Device place(kLtc, static_cast<c10::DeviceIndex>(device.ordinal()));
  const auto ones = [&](at::IntArrayRef sizes) { return at::full(sizes, 1.0, at::TensorOptions(place).dtype(at::kFloat)); };
  const at::Tensor weight = ones({4, 4}).requires_grad_(), bias = ones({4}).requires_grad_();
  const at::Tensor loss = record_forward(ones({4, 4}), weight, bias);
  const at::NoGradGuard in_backward_and_optimizer;
  record_backward(loss);
  at::_foreach_add_({weight, bias}, {ones({4, 4}), ones({4})}, -0.5);
}

}  // namespace

bool warm_up_recording(LazyDevice& device) noexcept {
  if (torch::autograd::AnomalyMode::is_enabled() || !nothing_intercepts()) return false;
  try {
    const Capture capture(device);
    record_step(device);
    return true;
  } catch (const std::exception& error) {
    log::debug("no step was recorded ahead of the first one: ", error.what());
    return false;
  }
}

}  // namespace ltc
