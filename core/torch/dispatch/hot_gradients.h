// Gradient nodes of hot ops: PyTorch's own classes, filled as its own kernels fill them. A gradient is
//   Node                       the node's class
//   fill(node, args...)        before the op: edges and what the backward wants of the operands
//   finish(node, result)       after it: what the backward wants of the result
#pragma once

#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include "core/torch/dispatch/gradient_node.h"

namespace ltc::gradients {

using at::Tensor;
using torch::autograd::SavedVariable;

inline torch::autograd::Edge edge_of(const Tensor& tensor) { return torch::autograd::impl::gradient_edge(tensor); }
inline torch::autograd::Edge edge_of(const std::optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? edge_of(*tensor) : torch::autograd::Edge();
}
// PyTorch's collect_next_edges() asks for memory operand by operand.
template <typename... Tensors>
std::vector<torch::autograd::Edge> next_edges(const Tensors&... tensors) {
  std::vector<torch::autograd::Edge> edges;
  edges.reserve(sizeof...(tensors));
  (edges.push_back(edge_of(tensors)), ...);
  return edges;
}

struct FromOperands {
  template <typename N>
  static void finish(N&, const Tensor&) {}
};

// The gradient of a sum or a difference.
template <typename N>
struct OfSum : FromOperands {
  using Node = N;
  static void fill(Node& node, const Tensor& self, const Tensor& other, const at::Scalar& alpha) {
    node.set_next_edges(next_edges(self, other));
    node.alpha = alpha;
    node.self_scalar_type = self.scalar_type();
    node.other_scalar_type = other.scalar_type();
  }
};

struct OfProduct : FromOperands {
  using Node = torch::autograd::generated::MulBackward0;
  static void fill(Node& node, const Tensor& self, const Tensor& other) {
    node.set_next_edges(next_edges(self, other));
    if (node.should_compute_output(0)) node.other_ = SavedVariable(other, /*is_output=*/false);
    if (node.should_compute_output(1)) node.self_ = SavedVariable(self, /*is_output=*/false);
    node.self_scalar_type = self.scalar_type();
    node.other_scalar_type = other.scalar_type();
  }
};

struct OfQuotient : FromOperands {
  using Node = torch::autograd::generated::DivBackward0;
  static void fill(Node& node, const Tensor& self, const Tensor& other) {
    node.set_next_edges(next_edges(self, other));
    node.other_ = SavedVariable(other, /*is_output=*/false);
    if (node.should_compute_output(1)) node.self_ = SavedVariable(self, /*is_output=*/false);
    node.self_scalar_type = self.scalar_type();
  }
};

// The gradient of a function whose derivative is known from its result.
template <typename N>
struct OfResult {
  using Node = N;
  static void fill(Node& node, const Tensor& self) { node.set_next_edges(next_edges(self)); }
  static void finish(Node& node, const Tensor& result) { node.result_ = SavedVariable(result, /*is_output=*/true); }
};

// The result of `op(args...)`, which remembers how it was made.
template <typename Gradient, typename Op, typename... Args>
Tensor remember(Op op, const Args&... args) {
  const auto node = make_node<typename Gradient::Node>();
  Gradient::fill(*node, args...);
  Tensor result = op(args...);
  if (!result.defined()) return result;
  torch::autograd::set_history(result, node);
  Gradient::finish(*node, result);
  return result;
}

}  // namespace ltc::gradients
