// Convolution as a matrix product: weights times the columns of windows.
#pragma once
#include "graph.h"

namespace ltc::kernels {

// Appends nodes that compute the convolution `node`, whose operands and result are values of the graph.
//
// A product per group computes the columns of all images; its result is to be permuted. With one group and at least
// points_by_image points, there is a product per image instead, whose result lies as it should; small images would leave a
// library's tiles half empty.
void expand_convolution(Graph& graph, const Node& node, int64_t points_by_image);

// How an element of the columns of windows finds its element of the input; one number per dim of space.
struct Windows {
  Sizes in, kernel, out, stride, padding, dilation;
  int64_t groups, channels;  // channels: of one group of the input
  bool transposed;
  bool by_image;  // the matrix of columns is one of a batch of images, not of groups
};
Windows windows_of(const Graph& graph, const Node& columns);

}  // namespace ltc::kernels
