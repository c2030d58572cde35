// Layers of LSTM, GRU and RNN, step by step; what does not depend on the step before is done for all steps at once.
//
// input [steps, batch, features], or packed [rows, features]: the rows of each step behind those of the step before, as many as
// `batch_sizes` says. states [batch, hidden].
#include <algorithm>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

Val transposed(Val weight) { return transpose(weight, 0, 1); }

// x of [rows, features] times a weight, plus a bias where there is one.
Val linear(Val x, Val weight, Val bias) {
  const Val y = matmul2(x, transposed(weight));
  return bias ? y + bias : y;
}

struct TimeStep {
  int64_t row, batch;
};
Val at(Val rows, const TimeStep& step) { return slice(rows, 0, step.row, step.row + step.batch); }

// The states of all sequences. A step changes those that go on: the others have ended or, in reverse, not begun.
struct States {
  Val all;
  Val of(const TimeStep& step) const { return slice(all, 0, 0, step.batch); }
  void set(const TimeStep& step, Val next) {
    all = step.batch == all.size(0) ? next : cat({next, slice(all, 0, step.batch, all.size(0))}, 0);
  }
};

struct Layer {
  Val input, hx, weight_ih, weight_hh, bias_ih, bias_hh;  // input: [rows, features]
  int64_t hidden;
  bool reverse;
  std::vector<TimeStep> order;  // in the order of time
  Ints padded;                  // the steps and the batch of all, of a layer that is not packed

  Val gate(Val gates, int64_t k) const { return slice(gates, 1, k * hidden, (k + 1) * hidden); }
  int64_t rows() const { return input.size(0); }
  // An operand or result of the op, which may be absent, and its rows.
  Val flat(Val x) const { return x && !padded.empty() ? reshape(x, {rows(), x.size(-1)}) : x; }
  Val shaped(Val x) const { return padded.empty() ? x : reshape(x, {padded[0], padded[1], x.size(-1)}); }
  // The rows of parts that were made in the order of time.
  Val joined(std::vector<Val> parts, bool is_reverse) const {
    if (is_reverse) std::ranges::reverse(parts);
    return cat(parts, 0);
  }
  // States before each step, given those after it.
  Val before(Val after) const {
    if (order.size() == 1) return hx;
    if (const int64_t batch = hx.size(0); order.back().batch == batch && order.front().batch == batch) {
      return reverse ? cat({slice(after, 0, batch, rows()), hx}, 0) : cat({hx, slice(after, 0, 0, rows() - batch)}, 0);
    }
    States states{hx};
    std::vector<Val> parts;
    for (const TimeStep& step : order) parts.push_back(states.of(step)), states.set(step, at(after, step));
    return joined(parts, reverse);
  }
};
Layer layer_of(const Call& call) {
  Layer l{call.math("input"),   call.math("hx"),      call.math("weight_ih"),  call.math("weight_hh"),
          call.math("bias_ih"), call.math("bias_hh"), call.math("hx").size(1), call.flag("reverse")};
  Ints batches;
  if (l.input.rank() == 3) {
    l.padded = {l.input.size(0), l.input.size(1)};
    batches.assign(static_cast<size_t>(l.padded[0]), l.padded[1]);
    l.input = reshape(l.input, {l.padded[0] * l.padded[1], l.input.size(2)});
  } else {
    batches = call.ints("batch_sizes");
  }
  int64_t row = 0;
  for (const int64_t batch : batches) l.order.push_back({row, batch}), row += batch;
  if (l.reverse) std::ranges::reverse(l.order);
  return l;
}

// The gradient of the states after a step.
Val gradient_at(Val grad_output, const TimeStep& step, Val later) {
  const Val here = grad_output ? at(grad_output, step) : Val();
  return here ? here + later : later;
}
Val given_or_zeros(Val gradient, Val state) { return gradient ? gradient : zeros_like(state); }

// The sums that the gradients of all gates, given for both products, come to.
struct Shares {
  Val input, weight_ih, weight_hh, bias_ih, bias_hh;
};
Shares shares_of(const Layer& l, Val of_input_gates, Val of_state_gates, Val states_before) {
  const Val a = of_input_gates, b = of_state_gates;
  return {l.shaped(matmul2(a, l.weight_ih)), matmul2(transposed(a), l.input), matmul2(transposed(b), states_before),
          l.bias_ih ? sum(a, {0}) : Val(), l.bias_hh ? sum(b, {0}) : Val()};
}

// ---- LSTM: gates in the order input, forget, cell, output

struct Cell {
  Val i, f, g, o;
};
Cell cell_of(const Layer& l, Val gates) {
  return {sigmoid(l.gate(gates, 0)), sigmoid(l.gate(gates, 1)), tanh(l.gate(gates, 2)), sigmoid(l.gate(gates, 3))};
}

Layer lstm_layer_of(const Call& call) {
  Layer l = layer_of(call);
  l.hidden = call.math("cx").size(1);
  return l;
}

// From the cell's size to the hidden state's, where they differ.
Val projection(const Layer& l, const Call& call) { return l.padded.empty() ? call.math("weight_hr") : Val(); }

// Our backward computes the gates again: nobody reads the reserve.
Results lstm_layer(const Call& call) {
  const Layer l = lstm_layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val from_input = linear(l.input, l.weight_ih, l.bias_ih), weight_hr = projection(l, call);
  States h{l.hx}, c{call.math("cx")};
  std::vector<Val> outputs;
  for (const TimeStep& step : l.order) {
    const Cell cell = cell_of(l, at(from_input, step) + linear(h.of(step), l.weight_hh, l.bias_hh));
    c.set(step, cell.f * c.of(step) + cell.i * cell.g);
    const Val y = cell.o * tanh(c.of(step));
    outputs.push_back(weight_hr ? linear(y, weight_hr, Val()) : y);
    h.set(step, outputs.back());
  }
  const Val reserve = call.wants(3) ? full(call.builder(), call.result(3).dtype, call.result(3).sizes, int64_t{0}) : Val();
  return {l.shaped(l.joined(outputs, l.reverse)), h.all, c.all, reserve};
}

Results lstm_layer_backward(const Call& call) {
  const Layer l = lstm_layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val before = l.before(l.flat(call.math("output"))), grad_output = l.flat(call.math("grad_output"));
  const Val gates = linear(l.input, l.weight_ih, l.bias_ih) + linear(before, l.weight_hh, l.bias_hh);
  States c{call.math("cx")};
  std::vector<Val> c_before, c_after;
  std::vector<Cell> cells;
  for (const TimeStep& step : l.order) {
    cells.push_back(cell_of(l, at(gates, step)));
    c_before.push_back(c.of(step));
    c_after.push_back(cells.back().f * c_before.back() + cells.back().i * cells.back().g);
    c.set(step, c_after.back());
  }
  const Val cx = call.math("cx"), weight_hr = projection(l, call);
  States dh{given_or_zeros(call.math("grad_hy"), l.hx)}, dc{given_or_zeros(call.math("grad_cy"), cx)};
  std::vector<Val> slopes, projected, unprojected;
  for (size_t k = l.order.size(); k-- > 0;) {
    const TimeStep& step = l.order[k];
    const Cell& cell = cells[k];
    Val g = gradient_at(grad_output, step, dh.of(step));
    const Val t = tanh(c_after[k]);
    if (weight_hr) {
      projected.push_back(g), unprojected.push_back(cell.o * t);
      g = matmul2(g, weight_hr);
    }
    const Val d = dc.of(step) + g * cell.o * (1 - t * t);
    const Val slope = cat({d * cell.g * cell.i * (1 - cell.i), d * c_before[k] * cell.f * (1 - cell.f),
                           d * cell.i * (1 - cell.g * cell.g), g * t * cell.o * (1 - cell.o)},
                          1);
    slopes.push_back(slope);
    dh.set(step, matmul2(slope, l.weight_hh));
    dc.set(step, d * cell.f);
  }
  const Val all = l.joined(slopes, !l.reverse);
  const Shares s = shares_of(l, all, all, before);
  std::vector<Val> gradients = {s.input, dh.all, dc.all, s.weight_ih, s.weight_hh, s.bias_ih, s.bias_hh};
  if (l.padded.empty()) {
    gradients.push_back(weight_hr ? matmul2(transposed(cat(projected, 0)), cat(unprojected, 0)) : Val());
  }
  return gradients;
}

// ---- GRU: gates in the order reset, update, new. The reserve holds them and what the reset gate scales.

Results gru_layer(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val from_input = linear(l.input, l.weight_ih, l.bias_ih);
  States states{l.hx};
  std::vector<Val> outputs, reserves;
  for (const TimeStep& step : l.order) {
    const Val h = states.of(step), x = at(from_input, step), y = linear(h, l.weight_hh, l.bias_hh), scaled = l.gate(y, 2);
    const Val reset = sigmoid(l.gate(x, 0) + l.gate(y, 0)), update = sigmoid(l.gate(x, 1) + l.gate(y, 1));
    const Val fresh = tanh(l.gate(x, 2) + reset * scaled);
    outputs.push_back((h - fresh) * update + fresh);
    states.set(step, outputs.back());
    if (call.wants(2)) reserves.push_back(cat({reset, update, fresh, scaled}, 1));
  }
  const Val reserve = call.wants(2) ? l.shaped(l.joined(reserves, l.reverse)) : Val();
  return {l.shaped(l.joined(outputs, l.reverse)), states.all, reserve};
}

Results gru_layer_backward(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val before = l.before(l.flat(call.math("output"))), reserve = l.flat(call.math("reserve"));
  const Val grad_output = l.flat(call.math("grad_output"));
  const Val reset = l.gate(reserve, 0), update = l.gate(reserve, 1), fresh = l.gate(reserve, 2), scaled = l.gate(reserve, 3);
  const Val of_fresh = (1 - update) * (1 - fresh * fresh), of_reset = of_fresh * scaled * reset * (1 - reset);
  const Val of_update = (before - fresh) * update * (1 - update);
  const Val by_input = cat({of_reset, of_update, of_fresh}, 1), by_state = cat({of_reset, of_update, of_fresh * reset}, 1);
  States dh{given_or_zeros(call.math("grad_hy"), l.hx)};
  std::vector<Val> gradients;
  for (size_t k = l.order.size(); k-- > 0;) {
    const TimeStep& step = l.order[k];
    const Val g = gradient_at(grad_output, step, dh.of(step)), wide = cat({g, g, g}, 1);
    gradients.push_back(wide);
    dh.set(step, g * at(update, step) + matmul2(wide * at(by_state, step), l.weight_hh));
  }
  const Val all = l.joined(gradients, !l.reverse);
  const Shares s = shares_of(l, all * by_input, all * by_state, before);
  return {s.input, dh.all, s.weight_ih, s.weight_hh, s.bias_ih, s.bias_hh};
}

// ---- RNN: the slopes of both functions follow from the output

Results rnn_layer(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const bool is_relu = call.string("nonlinearity") == "relu";
  const Val from_input = linear(l.input, l.weight_ih, l.bias_ih);
  States states{l.hx};
  std::vector<Val> outputs;
  for (const TimeStep& step : l.order) {
    const Val gate = at(from_input, step) + linear(states.of(step), l.weight_hh, l.bias_hh);
    outputs.push_back(is_relu ? maximum(gate, 0) : tanh(gate));
    states.set(step, outputs.back());
  }
  return {l.joined(outputs, l.reverse), states.all};
}

Results rnn_layer_backward(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val output = call.math("output"), grad_output = call.math("grad_output");
  const Val slopes = call.string("nonlinearity") == "relu" ? cast(output > 0, output.dtype()) : 1 - output * output;
  States dh{given_or_zeros(call.math("grad_hy"), l.hx)};
  std::vector<Val> gates;
  for (size_t k = l.order.size(); k-- > 0;) {
    const TimeStep& step = l.order[k];
    gates.push_back(gradient_at(grad_output, step, dh.of(step)) * at(slopes, step));
    dh.set(step, matmul2(gates.back(), l.weight_hh));
  }
  const Val all = l.joined(gates, !l.reverse);
  const Shares s = shares_of(l, all, all, l.before(output));
  return {s.input, dh.all, s.weight_ih, s.weight_hh, s.bias_ih, s.bias_hh};
}

constexpr Decomposition kRules[] = {
    {"ltc::lstm_layer", lstm_layer},        {"ltc::lstm_layer_backward", lstm_layer_backward},
    {"ltc::gru_layer", gru_layer},          {"ltc::gru_layer_backward", gru_layer_backward},
    {"ltc::packed_lstm_layer", lstm_layer}, {"ltc::packed_lstm_layer_backward", lstm_layer_backward},
    {"ltc::packed_gru_layer", gru_layer},   {"ltc::packed_gru_layer_backward", gru_layer_backward},
    {"ltc::packed_rnn_layer", rnn_layer},   {"ltc::packed_rnn_layer_backward", rnn_layer_backward},
};

}  // namespace

std::span<const Decomposition> recurrent() { return kRules; }

}  // namespace ltc::decompose
