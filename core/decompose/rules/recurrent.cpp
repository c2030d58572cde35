// Layers of LSTM and GRU, step by step; what does not depend on the step before is done for all steps at once.
//
// input [steps, batch, features], states [batch, hidden].
#include <algorithm>

#include "core/decompose/rules/families.h"

namespace ltc::decompose {
namespace {

Val transposed(Val weight) { return transpose(weight, 0, 1); }

// x of [.., features] times a weight, plus a bias where there is one.
Val linear(Val x, Val weight, Val bias) {
  Ints sizes = x.sizes();
  sizes.back() = weight.size(0);
  const Val y = reshape(matmul2(reshape(x, {-1, x.size(-1)}), transposed(weight)), sizes);
  return bias ? y + bias : y;
}

struct Layer {
  Val input, hx, weight_ih, weight_hh, bias_ih, bias_hh;
  int64_t steps, batch, hidden;
  bool reverse;

  // The steps in the order of time.
  Ints order() const {
    Ints result;
    for (int64_t k = 0; k < steps; ++k) result.push_back(reverse ? steps - 1 - k : k);
    return result;
  }
  Val gate(Val gates, int64_t k) const { return slice(gates, -1, k * hidden, (k + 1) * hidden); }
  // States before each step, given those after it.
  Val before(Val after) const {
    const Val first = reshape(hx, {1, batch, hidden});
    return reverse ? cat({slice(after, 0, 1, steps), first}, 0) : cat({first, slice(after, 0, 0, steps - 1)}, 0);
  }
};
Layer layer_of(const Call& call) {
  const Val input = call.math("input"), hx = call.math("hx");
  return {input,
          hx,
          call.math("weight_ih"),
          call.math("weight_hh"),
          call.math("bias_ih"),
          call.math("bias_hh"),
          input.size(0),
          hx.size(0),
          hx.size(1),
          call.flag("reverse")};
}

// In the order of the steps, made in the order of time.
Val joined(std::vector<Val> parts, bool reverse) {
  if (reverse) std::ranges::reverse(parts);
  for (Val& part : parts) part = unsqueeze(part, 0);
  return cat(parts, 0);
}

Val gradient_at(Val grad_output, int64_t step, Val later) {
  const Val here = grad_output ? select(grad_output, 0, step) : Val();
  return here && later ? here + later : here ? here : later;
}

// The sums that the gradients of all gates, given for both products, come to.
struct Shares {
  Val input, weight_ih, weight_hh, bias_ih, bias_hh;
};
Shares shares_of(const Layer& l, Val of_input_gates, Val of_state_gates, Val states_before) {
  const int64_t rows = l.steps * l.batch;
  const auto flat = [&](Val x) { return reshape(x, {rows, x.size(-1)}); };
  const Val a = flat(of_input_gates), b = flat(of_state_gates);
  return {reshape(matmul2(a, l.weight_ih), l.input.sizes()), matmul2(transposed(a), flat(l.input)),
          matmul2(transposed(b), flat(states_before)), l.bias_ih ? sum(a, {0}) : Val(), l.bias_hh ? sum(b, {0}) : Val()};
}

// ---- LSTM: gates in the order input, forget, cell, output

struct Cell {
  Val i, f, g, o;
};
Cell cell_of(const Layer& l, Val gates) {
  return {sigmoid(l.gate(gates, 0)), sigmoid(l.gate(gates, 1)), tanh(l.gate(gates, 2)), sigmoid(l.gate(gates, 3))};
}

// Our backward computes the gates again: nobody reads the reserve.
Results lstm_layer(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val from_input = linear(l.input, l.weight_ih, l.bias_ih);
  Val h = l.hx, c = call.math("cx");
  std::vector<Val> outputs;
  for (const int64_t step : l.order()) {
    const Cell cell = cell_of(l, select(from_input, 0, step) + linear(h, l.weight_hh, l.bias_hh));
    c = cell.f * c + cell.i * cell.g;
    h = cell.o * tanh(c);
    outputs.push_back(h);
  }
  const Val reserve = call.wants(3) ? full(call.builder(), call.result(3).dtype, call.result(3).sizes, int64_t{0}) : Val();
  return {joined(outputs, l.reverse), h, c, reserve};
}

Results lstm_layer_backward(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val before = l.before(call.math("output")), grad_output = call.math("grad_output");
  const Val gates = linear(l.input, l.weight_ih, l.bias_ih) + linear(before, l.weight_hh, l.bias_hh);
  Ints order = l.order();
  std::vector<Val> states = {call.math("cx")};
  std::vector<Cell> cells;
  for (const int64_t step : order) {
    cells.push_back(cell_of(l, select(gates, 0, step)));
    states.push_back(cells.back().f * states.back() + cells.back().i * cells.back().g);
  }
  const Val zeros = zeros_like(l.hx);
  Val dh = call.math("grad_hy"), dc = call.math("grad_cy");
  if (!dc) dc = zeros;
  std::vector<Val> slopes;
  for (size_t k = order.size(); k-- > 0;) {
    const Cell& cell = cells[k];
    const Val total = gradient_at(grad_output, order[k], dh), t = tanh(states[k + 1]), g = total ? total : zeros;
    dc = dc + g * cell.o * (1 - t * t);
    const Val slope = cat({dc * cell.g * cell.i * (1 - cell.i), dc * states[k] * cell.f * (1 - cell.f),
                           dc * cell.i * (1 - cell.g * cell.g), g * t * cell.o * (1 - cell.o)},
                          1);
    slopes.push_back(slope);
    dh = matmul2(slope, l.weight_hh);
    dc = dc * cell.f;
  }
  const Val all = joined(slopes, !l.reverse);
  const Shares s = shares_of(l, all, all, before);
  return {s.input, dh, dc, s.weight_ih, s.weight_hh, s.bias_ih, s.bias_hh};
}

// ---- GRU: gates in the order reset, update, new. The reserve holds them and what the reset gate scales.

Results gru_layer(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val from_input = linear(l.input, l.weight_ih, l.bias_ih);
  Val h = l.hx;
  std::vector<Val> outputs, reserves;
  for (const int64_t step : l.order()) {
    const Val x = select(from_input, 0, step), y = linear(h, l.weight_hh, l.bias_hh), scaled = l.gate(y, 2);
    const Val reset = sigmoid(l.gate(x, 0) + l.gate(y, 0)), update = sigmoid(l.gate(x, 1) + l.gate(y, 1));
    const Val fresh = tanh(l.gate(x, 2) + reset * scaled);
    h = (h - fresh) * update + fresh;
    outputs.push_back(h);
    if (call.wants(2)) reserves.push_back(cat({reset, update, fresh, scaled}, 1));
  }
  return {joined(outputs, l.reverse), h, call.wants(2) ? joined(reserves, l.reverse) : Val()};
}

Results gru_layer_backward(const Call& call) {
  const Layer l = layer_of(call);
  if (l.input.count() == 0) return nothing();
  const Val before = l.before(call.math("output")), reserve = call.math("reserve"), grad_output = call.math("grad_output");
  const Val reset = l.gate(reserve, 0), update = l.gate(reserve, 1), fresh = l.gate(reserve, 2), scaled = l.gate(reserve, 3);
  const Val of_fresh = (1 - update) * (1 - fresh * fresh), of_reset = of_fresh * scaled * reset * (1 - reset);
  const Val of_update = (before - fresh) * update * (1 - update);
  const Val by_input = cat({of_reset, of_update, of_fresh}, 2), by_state = cat({of_reset, of_update, of_fresh * reset}, 2);
  Ints order = l.order();
  Val dh = call.math("grad_hy");
  std::vector<Val> gradients;
  for (size_t k = order.size(); k-- > 0;) {
    const Val total = gradient_at(grad_output, order[k], dh), g = total ? total : zeros_like(l.hx), wide = cat({g, g, g}, 1);
    gradients.push_back(wide);
    dh = g * select(update, 0, order[k]) + matmul2(wide * select(by_state, 0, order[k]), l.weight_hh);
  }
  const Val all = joined(gradients, !l.reverse);
  const Shares s = shares_of(l, all * by_input, all * by_state, before);
  return {s.input, dh, s.weight_ih, s.weight_hh, s.bias_ih, s.bias_hh};
}

constexpr Decomposition kRules[] = {
    {"ltc::lstm_layer", lstm_layer},
    {"ltc::lstm_layer_backward", lstm_layer_backward},
    {"ltc::gru_layer", gru_layer},
    {"ltc::gru_layer_backward", gru_layer_backward},
};

}  // namespace

std::span<const Decomposition> recurrent() { return kRules; }

}  // namespace ltc::decompose
