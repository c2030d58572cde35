// One layer of a recurrent network in one direction, forward and backward: ops of this library, and how the CPU computes them.
// A plugin that knows them by name has whole layers; for all others, libtorch's CPU does what eager PyTorch does there.
//
// input [steps, batch, features], states [batch, hidden], weights and biases as torch.nn.LSTM and torch.nn.GRU hold them;
// `reverse` goes from the last step to the first. Without `train` there is no reserve, which is what the backward wants of the
// forward and nobody else reads. The backward gives gradients in the order of the forward's arguments.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mkldnn_rnn_layer_backward_cpu_dispatch.h>
#include <ATen/ops/mkldnn_rnn_layer_cpu_dispatch.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

namespace ltc {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;

bool is_given(const OptTensor& tensor) { return tensor && tensor->defined(); }

// ---- LSTM: oneDNN's fused layer, as in eager mode

constexpr int64_t kLstmMode = 2;  // of ATen's mkldnn ops

// ATen's kernels take the memory of their operands for row-major.
OptTensor row_major(const OptTensor& tensor) { return is_given(tensor) ? OptTensor(tensor->contiguous()) : tensor; }

Tensor bias_or_zeros(const OptTensor& bias, const Tensor& weight) {
  return is_given(bias) ? bias->contiguous() : at::zeros({weight.size(0)}, weight.options());
}

using LstmResults = std::tuple<Tensor, Tensor, Tensor, Tensor>;
LstmResults lstm_layer(const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& weight_ih, const Tensor& weight_hh,
                       const OptTensor& bias_ih, const OptTensor& bias_hh, bool reverse, bool train) {
  at::AutoDispatchBelowAutograd below_autograd;
  c10::AutoGradMode keeps_workspace(train);  // how ATen's kernel is told
  return at::cpu::mkldnn_rnn_layer(input.contiguous(), weight_ih.contiguous(), weight_hh.contiguous(),
                                   bias_or_zeros(bias_ih, weight_ih), bias_or_zeros(bias_hh, weight_hh), hx.contiguous(),
                                   cx.contiguous(), reverse, {}, kLstmMode, hx.size(1), /*num_layers=*/1, /*has_biases=*/true,
                                   /*bidirectional=*/false, /*batch_first=*/false, train);
}

using LstmGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
LstmGradients lstm_layer_backward(const OptTensor& grad_output, const OptTensor& grad_hy, const OptTensor& grad_cy,
                                  const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& weight_ih,
                                  const Tensor& weight_hh, const OptTensor& bias_ih, const OptTensor& bias_hh,
                                  const Tensor& output, const Tensor& hy, const Tensor& cy, const Tensor& reserve, bool reverse) {
  auto [of_input, of_weight_ih, of_weight_hh, of_bias_ih, of_bias_hh, of_hx, of_cx] = at::cpu::mkldnn_rnn_layer_backward(
      input.contiguous(), weight_ih.contiguous(), weight_hh.contiguous(), bias_or_zeros(bias_ih, weight_ih),
      bias_or_zeros(bias_hh, weight_hh), hx.contiguous(), cx.contiguous(), output.contiguous(), hy.contiguous(), cy.contiguous(),
      row_major(grad_output), row_major(grad_hy), row_major(grad_cy), reverse, kLstmMode, hx.size(1), /*num_layers=*/1,
      /*has_biases=*/true, /*train=*/true, /*bidirectional=*/false, {}, /*batch_first=*/false, reserve.contiguous());
  if (!is_given(bias_ih)) of_bias_ih = of_bias_hh = Tensor();
  return {of_input, of_hx, of_cx, of_weight_ih, of_weight_hh, of_bias_ih, of_bias_hh};
}

// ---- GRU: the arithmetic of ATen's CPU path, with all that does not depend on the step before done for all steps at once

// The steps in the order of time.
std::vector<int64_t> in_order(int64_t steps, bool reverse) {
  std::vector<int64_t> order(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) order[static_cast<size_t>(k)] = reverse ? steps - 1 - k : k;
  return order;
}

// The k-th of the blocks of columns that gates stand in.
Tensor block(const Tensor& gates, int64_t k, int64_t hidden) { return gates.narrow(-1, k * hidden, hidden); }

// The reserve holds, for each step, reset gate, update gate, new state, and what the reset gate scales in the new state.
std::tuple<Tensor, Tensor, Tensor> gru_layer(const Tensor& input, const Tensor& hx, const Tensor& weight_ih,
                                             const Tensor& weight_hh, const OptTensor& bias_ih, const OptTensor& bias_hh,
                                             bool reverse, bool train) {
  const int64_t steps = input.size(0), batch = hx.size(0), hidden = hx.size(1);
  const Tensor input_gates = at::linear(input, weight_ih, bias_ih), weight = weight_hh.t();
  Tensor output = at::empty({steps, batch, hidden}, input.options());
  Tensor reserve = at::empty({train ? steps : 1, batch, 4 * hidden}, input.options());
  Tensor state = hx;
  for (const int64_t step : in_order(steps, reverse)) {
    const Tensor from_input = input_gates[step], gates = reserve[train ? step : 0];
    const Tensor from_state = is_given(bias_hh) ? at::addmm(*bias_hh, state, weight) : at::mm(state, weight);
    Tensor reset_and_update = gates.narrow(1, 0, 2 * hidden), fresh = block(gates, 2, hidden), scaled = block(gates, 3, hidden);
    at::add_out(reset_and_update, from_state.narrow(1, 0, 2 * hidden), from_input.narrow(1, 0, 2 * hidden)).sigmoid_();
    scaled.copy_(block(from_state, 2, hidden));
    at::addcmul_out(fresh, block(from_input, 2, hidden), scaled, block(gates, 0, hidden)).tanh_();
    Tensor next = output[step];
    at::sub_out(next, state, fresh).mul_(block(gates, 1, hidden)).add_(fresh);
    state = next;
  }
  return {std::move(output), state.clone(), train ? std::move(reserve) : Tensor()};
}

using GruGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
GruGradients gru_layer_backward(const OptTensor& grad_output, const OptTensor& grad_hy, const Tensor& input, const Tensor& hx,
                                const Tensor& weight_ih, const Tensor& weight_hh, const OptTensor& bias_ih,
                                const OptTensor& /*bias_hh*/, const Tensor& output, const Tensor& /*hy*/, const Tensor& reserve,
                                bool reverse) {
  const int64_t steps = input.size(0), batch = hx.size(0), hidden = hx.size(1);
  const Tensor reset = block(reserve, 0, hidden), update = block(reserve, 1, hidden), fresh = block(reserve, 2, hidden);
  const Tensor first = hx.unsqueeze(0);
  const Tensor before =
      reverse ? at::cat({output.narrow(0, 1, steps - 1), first}) : at::cat({first, output.narrow(0, 0, steps - 1)});

  // How the gates, before their functions, move with the state after the step.
  const Tensor of_fresh = (1 - update) * (1 - fresh * fresh);
  const Tensor of_reset = of_fresh * block(reserve, 3, hidden) * reset * (1 - reset);
  const Tensor of_update = (before - fresh) * update * (1 - update);
  const Tensor slopes = at::cat({of_reset, of_update, of_fresh * reset}, 2).view({steps, batch, 3, hidden});

  // Back in time: the gradient of each state, and of the gates that the state before it gave.
  Tensor states = at::empty({steps, batch, hidden}, input.options()), gates = at::empty_like(slopes);
  Tensor carried = is_given(grad_hy) ? *grad_hy : at::zeros_like(hx);
  for (const int64_t step : in_order(steps, !reverse)) {
    Tensor state = states[step], gate = gates[step];
    is_given(grad_output) ? at::add_out(state, (*grad_output)[step], carried) : state.copy_(carried);
    at::mul_out(gate, slopes[step], state.unsqueeze(1));
    carried = at::addmm(state * update[step], gate.view({batch, 3 * hidden}), weight_hh);
  }

  const Tensor of_state_gates = gates.view({steps * batch, 3 * hidden});
  Tensor of_input_gates = of_state_gates.clone();  // the same but for the new state's, which the reset gate does not scale
  block(of_input_gates, 2, hidden).copy_((of_fresh * states).reshape({steps * batch, hidden}));
  return {at::mm(of_input_gates, weight_ih).view_as(input),
          carried,
          at::mm(of_input_gates.t(), input.reshape({steps * batch, -1})),
          at::mm(of_state_gates.t(), before.view({steps * batch, hidden})),
          is_given(bias_ih) ? of_input_gates.sum(0) : Tensor(),
          is_given(bias_ih) ? of_state_gates.sum(0) : Tensor()};
}

TORCH_LIBRARY_FRAGMENT(ltc, m) {
  m.def(
      "lstm_layer(Tensor input, Tensor hx, Tensor cx, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, "
      "bool reverse, bool train) -> (Tensor output, Tensor hy, Tensor cy, Tensor reserve)");
  m.def(
      "lstm_layer_backward(Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, Tensor input, Tensor hx, Tensor cx, "
      "Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, Tensor output, Tensor hy, Tensor cy, Tensor "
      "reserve, "
      "bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "gru_layer(Tensor input, Tensor hx, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, bool reverse, "
      "bool train) -> (Tensor output, Tensor hy, Tensor reserve)");
  m.def(
      "gru_layer_backward(Tensor? grad_output, Tensor? grad_hy, Tensor input, Tensor hx, Tensor weight_ih, Tensor weight_hh, "
      "Tensor? bias_ih, Tensor? bias_hh, Tensor output, Tensor hy, Tensor reserve, bool reverse) -> "
      "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(ltc, CPU, m) {
  m.impl("lstm_layer", lstm_layer);
  m.impl("lstm_layer_backward", lstm_layer_backward);
  m.impl("gru_layer", gru_layer);
  m.impl("gru_layer_backward", gru_layer_backward);
}

}  // namespace
}  // namespace ltc
