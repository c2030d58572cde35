// One layer of a recurrent network in one direction, forward and backward: ops of this library, and how the CPU computes them.
// A plugin that knows them by name has whole layers; for all others, libtorch's CPU does what eager PyTorch does there.
//
// input [steps, batch, features], states [batch, hidden], weights and biases as torch.nn.LSTM, torch.nn.GRU and torch.nn.RNN hold
// them; `reverse` goes from the last step to the first. Packed input is [rows, features]: the rows of each step behind those of
// the step before, as many as `batch_sizes` says; the first has the whole batch, and none has more than the one before. With a
// projection, `weight_hr`, the hidden state of an LSTM, `hx`, has its rows' size instead of the cell's. Without `train` there is
// no reserve, which is what the backward wants of the forward and nobody else reads. The backward gives gradients in the order
// of the forward's arguments.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mkldnn_rnn_layer_backward_cpu_dispatch.h>
#include <ATen/ops/mkldnn_rnn_layer_cpu_dispatch.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <numeric>
#include <utility>

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

// ---- Packed sequences, and GRU: the arithmetic of ATen's CPU path, with all that does not depend on the step before done for
// all steps at once

struct TimeStep {
  int64_t row, batch;
};

// The steps in the order of time.
std::vector<TimeStep> in_order(at::IntArrayRef batch_sizes, bool reverse) {
  std::vector<TimeStep> steps;
  int64_t row = 0;
  for (const int64_t batch : batch_sizes) steps.push_back({row, batch}), row += batch;
  if (reverse) std::ranges::reverse(steps);
  return steps;
}

Tensor at_step(const Tensor& rows, const TimeStep& step) { return rows.narrow(0, step.row, step.batch); }

// The k-th of the blocks of columns that gates stand in.
Tensor block(const Tensor& gates, int64_t k, int64_t hidden) { return gates.narrow(1, k * hidden, hidden); }

// The states of all sequences. A step changes those that go on: the others have ended or, in reverse, not begun.
class States {
 public:
  explicit States(const Tensor& first) : all_(first.contiguous()) {}
  const Tensor& all() const { return all_; }
  Tensor last() const { return all_.clone(at::MemoryFormat::Contiguous); }  // apart from the outputs
  Tensor of(const TimeStep& step) const { return all_.narrow(0, 0, step.batch); }
  void set(const TimeStep& step, const Tensor& next) {
    if (step.batch == all_.size(0)) {
      all_ = next, is_own_ = false;
      return;
    }
    if (!is_own_) all_ = last(), is_own_ = true;
    of(step).copy_(next);
  }

 private:
  Tensor all_;
  bool is_own_ = false;  // may be written
};

// The states before each step, given those after it.
Tensor before(const Tensor& after, const Tensor& first, at::IntArrayRef batch_sizes, bool reverse) {
  if (batch_sizes.size() == 1) return first;
  std::vector<int64_t> index(static_cast<size_t>(after.size(0))), latest(static_cast<size_t>(first.size(0)));
  std::iota(latest.begin(), latest.end(), after.size(0));
  for (const TimeStep& step : in_order(batch_sizes, reverse)) {
    for (int64_t k = 0; k < step.batch; ++k) {
      index[static_cast<size_t>(step.row + k)] = std::exchange(latest[static_cast<size_t>(k)], step.row + k);
    }
  }
  return at::cat({after, first}).index_select(0, at::from_blob(index.data(), {after.size(0)}, at::kLong));
}

// The gradient of the states after a step.
Tensor gradient_at(const OptTensor& of_output, const TimeStep& step, const Tensor& later) {
  return is_given(of_output) ? at_step(*of_output, step) + later : later;
}

Tensor given_or_zeros(const OptTensor& gradient, const Tensor& state) {
  return is_given(gradient) ? *gradient : at::zeros_like(state);
}

// ---- LSTM. The reserve holds, for each row, input gate, forget gate, new values, output gate, and the cell.

LstmResults packed_lstm_layer(const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& weight_ih,
                              const Tensor& weight_hh, const OptTensor& bias_ih, const OptTensor& bias_hh,
                              const OptTensor& weight_hr, at::IntArrayRef batch_sizes, bool reverse, bool train) {
  at::AutoDispatchBelowAutograd below_autograd;
  const int64_t rows = input.size(0), hidden = cx.size(1);
  Tensor from_input = at::linear(input, weight_ih, bias_ih);
  if (is_given(bias_hh)) from_input.add_(*bias_hh);
  const Tensor weight = weight_hh.t(), projection = is_given(weight_hr) ? weight_hr->t() : Tensor();
  Tensor output = at::empty({rows, hx.size(1)}, input.options());
  Tensor reserve = at::empty({train ? rows : hx.size(0), 5 * hidden}, input.options());
  States states(hx), cells(cx);
  for (const TimeStep& step : in_order(batch_sizes, reverse)) {
    const Tensor gates = at_step(reserve, train ? step : TimeStep{0, step.batch});
    Tensor all = gates.narrow(1, 0, 4 * hidden), cell = block(gates, 4, hidden), next = at_step(output, step);
    at::addmm_out(all, at_step(from_input, step), states.of(step), weight);
    all.narrow(1, 0, 2 * hidden).sigmoid_(), block(gates, 2, hidden).tanh_(), block(gates, 3, hidden).sigmoid_();
    at::mul_out(cell, block(gates, 1, hidden), cells.of(step)).addcmul_(block(gates, 0, hidden), block(gates, 2, hidden));
    if (projection.defined()) {
      at::mm_out(next, cell.tanh().mul_(block(gates, 3, hidden)), projection);
    } else {
      at::tanh_out(next, cell).mul_(block(gates, 3, hidden));
    }
    states.set(step, next), cells.set(step, cell);
  }
  return {std::move(output), states.last(), cells.last(), train ? std::move(reserve) : Tensor()};
}

using PackedLstmGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
PackedLstmGradients packed_lstm_layer_backward(const OptTensor& grad_output, const OptTensor& grad_hy, const OptTensor& grad_cy,
                                               const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& weight_ih,
                                               const Tensor& weight_hh, const OptTensor& bias_ih, const OptTensor& /*bias_hh*/,
                                               const OptTensor& weight_hr, const Tensor& output, const Tensor& /*hy*/,
                                               const Tensor& /*cy*/, const Tensor& reserve, at::IntArrayRef batch_sizes,
                                               bool reverse) {
  at::AutoDispatchBelowAutograd below_autograd;
  const int64_t rows = input.size(0), hidden = cx.size(1);
  const Tensor in = block(reserve, 0, hidden), forget = block(reserve, 1, hidden), fresh = block(reserve, 2, hidden);
  const Tensor out = block(reserve, 3, hidden), cell = block(reserve, 4, hidden), bent = cell.tanh();

  // How the gates, before their functions, move with the cell and, the output gate, with the state before its projection; and how
  // the cell moves with that.
  const Tensor cell_before = before(cell, cx, batch_sizes, reverse);
  const Tensor slopes =
      at::cat({fresh * in * (1 - in), cell_before * forget * (1 - forget), in * (1 - fresh * fresh)}, 1).view({rows, 3, hidden});
  const Tensor of_out = bent * out * (1 - out), of_cell = out * (1 - bent * bent);

  // Back in time: the gradients of each state and cell, and of the gates that the state before gave.
  Tensor gates = at::empty({rows, 4, hidden}, input.options());
  Tensor projected = is_given(weight_hr) ? at::empty_like(output) : Tensor();
  const OptTensor of_output = row_major(grad_output);
  States of_states(given_or_zeros(grad_hy, hx)), of_cells(given_or_zeros(grad_cy, cx));
  for (const TimeStep& step : in_order(batch_sizes, !reverse)) {
    const Tensor here = gradient_at(of_output, step, of_states.of(step));
    if (projected.defined()) at_step(projected, step).copy_(here);
    const Tensor state = projected.defined() ? at::mm(here, *weight_hr) : here;
    const Tensor total = at::addcmul(of_cells.of(step), state, at_step(of_cell, step));
    const Tensor gate = at_step(gates, step);
    Tensor others = gate.narrow(1, 0, 3), last = gate.select(1, 3);
    at::mul_out(others, at_step(slopes, step), total.unsqueeze(1));
    at::mul_out(last, at_step(of_out, step), state);
    of_states.set(step, at::mm(gate.view({step.batch, 4 * hidden}), weight_hh));
    of_cells.set(step, total * at_step(forget, step));
  }

  const Tensor of_gates = gates.view({rows, 4 * hidden});
  const Tensor of_bias = is_given(bias_ih) ? of_gates.sum(0) : Tensor();
  return {at::mm(of_gates, weight_ih),
          of_states.all(),
          of_cells.all(),
          at::mm(of_gates.t(), input),
          at::mm(of_gates.t(), before(output, hx, batch_sizes, reverse)),
          of_bias,
          of_bias.defined() ? of_bias.clone() : Tensor(),
          projected.defined() ? at::mm(projected.t(), out * bent) : Tensor()};
}

// ---- GRU. The reserve holds, for each row, reset gate, update gate, new state, and what the reset gate scales in the new state.

using GruResults = std::tuple<Tensor, Tensor, Tensor>;
GruResults packed_gru_layer(const Tensor& input, const Tensor& hx, const Tensor& weight_ih, const Tensor& weight_hh,
                            const OptTensor& bias_ih, const OptTensor& bias_hh, at::IntArrayRef batch_sizes, bool reverse,
                            bool train) {
  const int64_t rows = input.size(0), hidden = hx.size(1);
  const Tensor input_gates = at::linear(input, weight_ih, bias_ih), weight = weight_hh.t();
  Tensor output = at::empty({rows, hidden}, input.options());
  Tensor reserve = at::empty({train ? rows : hx.size(0), 4 * hidden}, input.options());
  States states(hx);
  for (const TimeStep& step : in_order(batch_sizes, reverse)) {
    const Tensor state = states.of(step), from_input = at_step(input_gates, step);
    const Tensor gates = at_step(reserve, train ? step : TimeStep{0, step.batch});
    const Tensor from_state = is_given(bias_hh) ? at::addmm(*bias_hh, state, weight) : at::mm(state, weight);
    Tensor reset_and_update = gates.narrow(1, 0, 2 * hidden), fresh = block(gates, 2, hidden), scaled = block(gates, 3, hidden);
    at::add_out(reset_and_update, from_state.narrow(1, 0, 2 * hidden), from_input.narrow(1, 0, 2 * hidden)).sigmoid_();
    scaled.copy_(block(from_state, 2, hidden));
    at::addcmul_out(fresh, block(from_input, 2, hidden), scaled, block(gates, 0, hidden)).tanh_();
    Tensor next = at_step(output, step);
    at::sub_out(next, state, fresh).mul_(block(gates, 1, hidden)).add_(fresh);
    states.set(step, next);
  }
  return {std::move(output), states.last(), train ? std::move(reserve) : Tensor()};
}

using GruGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
GruGradients packed_gru_layer_backward(const OptTensor& grad_output, const OptTensor& grad_hy, const Tensor& input,
                                       const Tensor& hx, const Tensor& weight_ih, const Tensor& weight_hh,
                                       const OptTensor& bias_ih, const OptTensor& /*bias_hh*/, const Tensor& output,
                                       const Tensor& /*hy*/, const Tensor& reserve, at::IntArrayRef batch_sizes, bool reverse) {
  const int64_t rows = input.size(0), hidden = hx.size(1);
  const Tensor reset = block(reserve, 0, hidden), update = block(reserve, 1, hidden), fresh = block(reserve, 2, hidden);
  const Tensor states_before = before(output, hx, batch_sizes, reverse);

  // How the gates, before their functions, move with the state after the step.
  const Tensor of_fresh = (1 - update) * (1 - fresh * fresh);
  const Tensor of_reset = of_fresh * block(reserve, 3, hidden) * reset * (1 - reset);
  const Tensor of_update = (states_before - fresh) * update * (1 - update);
  const Tensor slopes = at::cat({of_reset, of_update, of_fresh * reset}, 1).view({rows, 3, hidden});

  // Back in time: the gradient of each state, and of the gates that the state before it gave.
  Tensor states = at::empty({rows, hidden}, input.options()), gates = at::empty_like(slopes);
  const OptTensor of_output = row_major(grad_output);
  States carried(given_or_zeros(grad_hy, hx));
  for (const TimeStep& step : in_order(batch_sizes, !reverse)) {
    Tensor state = at_step(states, step), gate = at_step(gates, step);
    is_given(of_output) ? at::add_out(state, at_step(*of_output, step), carried.of(step)) : state.copy_(carried.of(step));
    at::mul_out(gate, at_step(slopes, step), state.unsqueeze(1));
    carried.set(step, at::addmm(state * at_step(update, step), gate.view({step.batch, 3 * hidden}), weight_hh));
  }

  const Tensor of_state_gates = gates.view({rows, 3 * hidden});
  Tensor of_input_gates = of_state_gates.clone();  // the same but for the new state's, which the reset gate does not scale
  block(of_input_gates, 2, hidden).copy_(of_fresh * states);
  return {at::mm(of_input_gates, weight_ih),
          carried.all(),
          at::mm(of_input_gates.t(), input),
          at::mm(of_state_gates.t(), states_before),
          is_given(bias_ih) ? of_input_gates.sum(0) : Tensor(),
          is_given(bias_ih) ? of_state_gates.sum(0) : Tensor()};
}

// ---- RNN. `nonlinearity` is "tanh" or "relu", whose slopes follow from the output.

bool is_relu(c10::string_view nonlinearity) {
  TORCH_CHECK(nonlinearity == "tanh" || nonlinearity == "relu", "nonlinearity is 'tanh' or 'relu', not '", nonlinearity, "'");
  return nonlinearity == "relu";
}

using RnnResults = std::tuple<Tensor, Tensor>;
RnnResults packed_rnn_layer(const Tensor& input, const Tensor& hx, const Tensor& weight_ih, const Tensor& weight_hh,
                            const OptTensor& bias_ih, const OptTensor& bias_hh, c10::string_view nonlinearity,
                            at::IntArrayRef batch_sizes, bool reverse) {
  Tensor output = at::linear(input, weight_ih, bias_ih);
  if (is_given(bias_hh)) output.add_(*bias_hh);
  const Tensor weight = weight_hh.t();
  const bool relu = is_relu(nonlinearity);
  States states(hx);
  for (const TimeStep& step : in_order(batch_sizes, reverse)) {
    Tensor next = at_step(output, step).addmm_(states.of(step), weight);
    states.set(step, relu ? next.relu_() : next.tanh_());
  }
  return {std::move(output), states.last()};
}

using RnnGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;
RnnGradients packed_rnn_layer_backward(const OptTensor& grad_output, const OptTensor& grad_hy, const Tensor& input,
                                       const Tensor& hx, const Tensor& weight_ih, const Tensor& weight_hh,
                                       const OptTensor& bias_ih, const OptTensor& /*bias_hh*/, const Tensor& output,
                                       c10::string_view nonlinearity, at::IntArrayRef batch_sizes, bool reverse) {
  const Tensor slopes = is_relu(nonlinearity) ? output.gt(0).to(output.scalar_type()) : 1 - output * output;
  Tensor gates = at::empty_like(output);  // before the function
  const OptTensor of_output = row_major(grad_output);
  States carried(given_or_zeros(grad_hy, hx));
  for (const TimeStep& step : in_order(batch_sizes, !reverse)) {
    Tensor gate = at_step(gates, step);
    at::mul_out(gate, at_step(slopes, step), gradient_at(of_output, step, carried.of(step)));
    carried.set(step, at::mm(gate, weight_hh));
  }
  const Tensor of_bias = is_given(bias_ih) ? gates.sum(0) : Tensor();
  return {at::mm(gates, weight_ih),
          carried.all(),
          at::mm(gates.t(), input),
          at::mm(gates.t(), before(output, hx, batch_sizes, reverse)),
          of_bias,
          of_bias.defined() ? of_bias.clone() : Tensor()};
}

// A layer whose sequences all have the same steps.
std::vector<int64_t> equal_batches(const Tensor& input) {
  return std::vector<int64_t>(static_cast<size_t>(input.size(0)), input.size(1));
}
Tensor as_rows(const Tensor& steps) { return steps.reshape({steps.size(0) * steps.size(1), steps.size(2)}); }
Tensor as_steps(const Tensor& rows, const Tensor& input) { return rows.view({input.size(0), input.size(1), rows.size(1)}); }

GruResults gru_layer(const Tensor& input, const Tensor& hx, const Tensor& weight_ih, const Tensor& weight_hh,
                     const OptTensor& bias_ih, const OptTensor& bias_hh, bool reverse, bool train) {
  auto [output, hy, reserve] =
      packed_gru_layer(as_rows(input), hx, weight_ih, weight_hh, bias_ih, bias_hh, equal_batches(input), reverse, train);
  return {as_steps(output, input), std::move(hy), train ? as_steps(reserve, input) : Tensor()};
}

GruGradients gru_layer_backward(const OptTensor& grad_output, const OptTensor& grad_hy, const Tensor& input, const Tensor& hx,
                                const Tensor& weight_ih, const Tensor& weight_hh, const OptTensor& bias_ih,
                                const OptTensor& bias_hh, const Tensor& output, const Tensor& hy, const Tensor& reserve,
                                bool reverse) {
  GruGradients gradients = packed_gru_layer_backward(is_given(grad_output) ? OptTensor(as_rows(*grad_output)) : grad_output,
                                                     grad_hy, as_rows(input), hx, weight_ih, weight_hh, bias_ih, bias_hh,
                                                     as_rows(output), hy, as_rows(reserve), equal_batches(input), reverse);
  std::get<0>(gradients) = as_steps(std::get<0>(gradients), input);
  return gradients;
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
  m.def(
      "packed_lstm_layer(Tensor input, Tensor hx, Tensor cx, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, "
      "Tensor? bias_hh, Tensor? weight_hr, int[] batch_sizes, bool reverse, bool train) -> "
      "(Tensor output, Tensor hy, Tensor cy, Tensor reserve)");
  m.def(
      "packed_lstm_layer_backward(Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, Tensor input, Tensor hx, Tensor cx, "
      "Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, Tensor? weight_hr, Tensor output, Tensor hy, "
      "Tensor cy, Tensor reserve, int[] batch_sizes, bool reverse) -> "
      "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "packed_gru_layer(Tensor input, Tensor hx, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, "
      "int[] batch_sizes, bool reverse, bool train) -> (Tensor output, Tensor hy, Tensor reserve)");
  m.def(
      "packed_gru_layer_backward(Tensor? grad_output, Tensor? grad_hy, Tensor input, Tensor hx, Tensor weight_ih, "
      "Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, Tensor output, Tensor hy, Tensor reserve, int[] batch_sizes, "
      "bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  m.def(
      "packed_rnn_layer(Tensor input, Tensor hx, Tensor weight_ih, Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, "
      "str nonlinearity, int[] batch_sizes, bool reverse) -> (Tensor output, Tensor hy)");
  m.def(
      "packed_rnn_layer_backward(Tensor? grad_output, Tensor? grad_hy, Tensor input, Tensor hx, Tensor weight_ih, "
      "Tensor weight_hh, Tensor? bias_ih, Tensor? bias_hh, Tensor output, str nonlinearity, int[] batch_sizes, bool reverse) -> "
      "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(ltc, CPU, m) {
  m.impl("lstm_layer", lstm_layer);
  m.impl("lstm_layer_backward", lstm_layer_backward);
  m.impl("gru_layer", gru_layer);
  m.impl("gru_layer_backward", gru_layer_backward);
  m.impl("packed_lstm_layer", packed_lstm_layer);
  m.impl("packed_lstm_layer_backward", packed_lstm_layer_backward);
  m.impl("packed_gru_layer", packed_gru_layer);
  m.impl("packed_gru_layer_backward", packed_gru_layer_backward);
  m.impl("packed_rnn_layer", packed_rnn_layer);
  m.impl("packed_rnn_layer_backward", packed_rnn_layer_backward);
}

}  // namespace
}  // namespace ltc
