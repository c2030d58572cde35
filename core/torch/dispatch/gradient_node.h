// Nodes of PyTorch's autograd graph.
#pragma once

#include <torch/csrc/autograd/edge.h>

#include <memory>
#include <type_traits>

namespace ltc {

// Counted as the edges of the graph count theirs: PyTorch 2.11 has the standard's pointer there.
using GradientNode = decltype(torch::autograd::Edge::function);

template <typename Node, typename... Args>
auto make_node(Args&&... args) {
  if constexpr (std::is_same_v<GradientNode, std::shared_ptr<torch::autograd::Node>>) {
    return std::make_shared<Node>(std::forward<Args>(args)...);
  } else {
    return c10::make_intrusive<Node>(std::forward<Args>(args)...);
  }
}

}  // namespace ltc
