// Recurrent cells. PyTorch sends those of devices like this one to fused ops that only CUDA has; here they are computed as its
// CPU path computes them, from ops that every plugin knows, and so are their gradients.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <torch/library.h>

namespace ltc {
namespace {

using at::Tensor;
using OptTensor = std::optional<Tensor>;

Tensor with_bias(const Tensor& gates, const OptTensor& bias) { return bias && bias->defined() ? gates + *bias : gates; }

// The last result is a workspace of the fused kernel's own backward: not needed here.
std::tuple<Tensor, Tensor, Tensor> lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                                             const OptTensor& input_bias, const OptTensor& hidden_bias) {
  const auto gates = (with_bias(hidden_gates, hidden_bias) + with_bias(input_gates, input_bias)).unsafe_chunk(4, 1);
  const Tensor in = gates[0].sigmoid(), forget = gates[1].sigmoid(), cell = gates[2].tanh(), out = gates[3].sigmoid();
  Tensor cy = forget * cx + in * cell;
  Tensor hy = out * cy.tanh();
  return {std::move(hy), std::move(cy), Tensor()};
}

std::tuple<Tensor, Tensor> gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                    const OptTensor& input_bias, const OptTensor& hidden_bias) {
  const auto input = with_bias(input_gates, input_bias).unsafe_chunk(3, 1);
  const auto hidden = with_bias(hidden_gates, hidden_bias).unsafe_chunk(3, 1);
  const Tensor reset = (hidden[0] + input[0]).sigmoid(), update = (hidden[1] + input[1]).sigmoid();
  const Tensor fresh = (input[2] + hidden[2] * reset).tanh();
  return {(hx - fresh) * update + fresh, Tensor()};
}

void add_cells(torch::Library& m) {
  m.impl("_thnn_fused_lstm_cell", lstm_cell);
  m.impl("_thnn_fused_gru_cell", gru_cell);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { add_cells(m); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { add_cells(m); }

}  // namespace
}  // namespace ltc
