// Kinds of recurrent networks: the names of their ops, and PyTorch's composites for them and for their cells.
#pragma once

#include <ATen/Context.h>
#include <ATen/ops/gru_cell_native.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_cell_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_cell_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_cell_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <torch/csrc/autograd/variable.h>

#include <tuple>

namespace ltc::recurrent {

using at::Tensor;
using Tensors = torch::autograd::variable_list;

// A kind has the end of its ops' names, the states of a layer, whether its forward keeps a reserve for its backward, and the
// attribute that tells it from others with the same ops.
struct Lstm {
  using Hx = at::TensorList;
  using Results = std::tuple<Tensor, Tensor, Tensor>;
  static constexpr const char *kLayer = "lstm_layer", *kNonlinearity = nullptr;
  static constexpr size_t kStates = 2;
  static constexpr bool kHasReserve = true;
  static Results composite(auto&&... args) { return at::native::lstm(args...); }
  static auto composite_cell(auto&&... args) { return at::native::lstm_cell(args...); }
  // Whether there is an op for padded input, [steps, batch, features].
  static bool takes_steps(const Tensor& input, bool is_projected) {
    return !is_projected && input.scalar_type() == at::kFloat && at::globalContext().userEnabledMkldnn() &&
           at::Context::hasMKLDNN();
  }
};

struct Gru {
  using Hx = const Tensor&;
  using Results = std::tuple<Tensor, Tensor>;
  static constexpr const char *kLayer = "gru_layer", *kNonlinearity = nullptr;
  static constexpr size_t kStates = 1;
  static constexpr bool kHasReserve = true;
  static Results composite(auto&&... args) { return at::native::gru(args...); }
  static Tensor composite_cell(auto&&... args) { return at::native::gru_cell(args...); }
  static bool takes_steps(const Tensor& /*input*/, bool /*is_projected*/) { return true; }
};

struct Rnn {
  using Hx = const Tensor&;
  using Results = std::tuple<Tensor, Tensor>;
  static constexpr const char* kLayer = "rnn_layer";
  static constexpr size_t kStates = 1;
  static constexpr bool kHasReserve = false;
  static bool takes_steps(const Tensor& /*input*/, bool /*is_projected*/) { return false; }
};

struct RnnTanh : Rnn {
  static constexpr const char* kNonlinearity = "tanh";
  static Results composite(auto&&... args) { return at::native::rnn_tanh(args...); }
  static Tensor composite_cell(auto&&... args) { return at::native::rnn_tanh_cell(args...); }
};

struct RnnRelu : Rnn {
  static constexpr const char* kNonlinearity = "relu";
  static Results composite(auto&&... args) { return at::native::rnn_relu(args...); }
  static Tensor composite_cell(auto&&... args) { return at::native::rnn_relu_cell(args...); }
};

// States as the kind's functions of PyTorch take them, and as a list.
template <typename Kind>
typename Kind::Hx hx_of(const Tensors& states) {
  if constexpr (Kind::kStates == 1) {
    return states[0];
  } else {
    return states;
  }
}
inline at::TensorList list_of(at::TensorList hx) { return hx; }
inline at::TensorList list_of(const Tensor& hx) { return at::TensorList(hx); }

inline Tensors vector_of(const auto& tuple) {
  return std::apply([](const auto&... tensors) { return Tensors{tensors...}; }, tuple);
}

template <typename Kind>
typename Kind::Results tuple_of(const Tensors& results) {
  if constexpr (Kind::kStates == 1) {
    return {results[0], results[1]};
  } else {
    return {results[0], results[1], results[2]};
  }
}

// Whether the hidden state of an LSTM is smaller than its cell.
inline bool is_projected(at::TensorList states) { return states.size() == 2 && states[0].sizes() != states[1].sizes(); }

}  // namespace ltc::recurrent
