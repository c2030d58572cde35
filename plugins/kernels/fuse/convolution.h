// Convolution as a matrix product: weights times the columns of windows.
#pragma once
#include "kernels/graph/graph.h"

namespace ltc::kernels {

// Appends nodes that compute the convolution `node`, whose operands and result are values of the graph.
//
// A product per group computes the columns of all images; its result is to be permuted. With one group and at least
// points_by_image points, there is a product per image instead, whose result lies as it should; small images would leave a
// library's tiles half empty.
void expand_convolution(Graph& graph, const Node& node, int64_t points_by_image);

}  // namespace ltc::kernels
