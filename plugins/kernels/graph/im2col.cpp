#include "kernels/graph/im2col.h"

namespace ltc::kernels {

Windows windows_of(const Graph& graph, const Node& columns) {
  const Sizes& x = graph.values[columns.in[0]].sizes;
  Windows windows;
  windows.in.assign(x.begin() + 2, x.end());
  windows.kernel = columns.integers("kernel");
  windows.out = columns.integers("out");
  windows.stride = columns.integers("stride");
  windows.padding = columns.integers("padding");
  windows.dilation = columns.integers("dilation");
  windows.groups = columns.integers("groups")[0];
  windows.channels = x[1] / windows.groups;
  windows.transposed = columns.integers("transposed")[0] != 0;
  windows.by_image = columns.integers("by_image")[0] != 0;
  return windows;
}

}  // namespace ltc::kernels
