// Convolutions and their gradients as a library takes them.
#pragma once
#include <cstdint>

#include "kernels/graph/graph.h"

namespace ltc::kernels {

enum class ConvolutionPass : uint8_t {
  kForward,         // x, w -> y
  kInputGradient,   // gradient of y, w -> that of x; a transposed convolution too
  kWeightGradient,  // x, gradient of y -> that of w
};

// The ordinary convolution from x to y, over two or three dims of space. One over one dim becomes one over two.
struct LibraryConvolution {
  ConvolutionPass pass;
  ltc_dtype dtype;
  Sizes x, w, y, stride, padding, dilation;
  int64_t groups;
  bool rounds = false;  // F32 may be computed in TF32
  auto operator<=>(const LibraryConvolution&) const = default;
};

// Whether a node of the ABI, aten::convolution or aten::convolution_backward, is of sizes and types that a library takes.
bool is_library_convolution(const ltc_graph& graph, const ltc_node& node);

// Appends what the node becomes: nodes of kind kLibraryConvolution, and the sum that is the gradient of a bias.
void add_library_convolutions(Graph& graph, const Node& node);

LibraryConvolution library_convolution(const Graph& graph, const Node& node);

}  // namespace ltc::kernels
