// Columns of windows in tiles, straight from the image: what a convolution spends its time on besides the product.
#pragma once
#include "kernels/plan/plan.h"

namespace ltc::kernels {

// Where the windows of `columns`, a value of the graph, can be packed so into `tiles`, another: their image lies in a buffer,
// seen through views that strides can say.
std::optional<Im2colKernel> im2col_kernel(const Graph& graph, ValueId columns, ValueId tiles);

// A work item per tile.
Source render_im2col(const Im2colKernel& kernel, const Dialect& dialect);

}  // namespace ltc::kernels
