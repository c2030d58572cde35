// Convolution as a matrix product: weights times the columns of windows.
#pragma once
#include "graph.h"

namespace ltc::kernels {

// Appends nodes that compute the convolution `node`, whose operands and result are values of the graph.
void expand_convolution(Graph& graph, const Node& node);

// How an element of the columns of windows finds its element of the input; one number per dim of space.
struct Windows {
  Sizes in, kernel, out, stride, padding, dilation;
  int64_t groups, channels;  // channels: of one group of the input
  bool transposed;
};
Windows windows_of(const Graph& graph, const Node& columns);

}  // namespace ltc::kernels
