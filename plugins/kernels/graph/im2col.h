// The columns of a convolution's windows as a matrix.
#pragma once
#include "kernels/graph/graph.h"

namespace ltc::kernels {

// How an element of the columns of windows finds its element of the input; one number per dim of space.
struct Windows {
  Sizes in, kernel, out, stride, padding, dilation;
  int64_t groups, channels;  // channels: of one group of the input
  bool transposed;
  bool by_image;  // the matrix of columns is one of a batch of images, not of groups
};
Windows windows_of(const Graph& graph, const Node& columns);

}  // namespace ltc::kernels
