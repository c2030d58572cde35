#include "kernels/graph/strided.h"

#include <algorithm>

#include "kernels/graph/dtype.h"
#include "kernels/graph/reads.h"

namespace ltc::kernels {
namespace {

// Where the variables are the first ones, as many as there are strides.
std::optional<Sizes> strides_of(const Index& position, size_t count) {
  Sizes strides(count, 0);
  for (const Term& term : position.terms) {
    if (term.digit.div != 1 || term.digit.mod != 0 || term.digit.var >= count) return std::nullopt;
    strides[term.digit.var] = term.factor;
  }
  return strides;
}

}  // namespace

std::optional<StridedView> strided_view(const Graph& graph, ValueId value) {
  const Value& seen = graph.values[value];
  IndexSpace space;
  Coords at;
  for (const int64_t size : seen.sizes) at.push_back(space.of_var(space.add({.extent = size})));
  std::optional<StridedView> found;
  while (true) {
    const NodeId producer = graph.values[value].producer;
    const bool is_end = producer == kNone || !is_view(graph.nodes[producer].kind);
    if (graph.is_scalar_param(value)) return std::nullopt;
    if (is_end || graph.values[value].count <= seen.count) {
      const Index position = space.linear(at, graph.values[value].sizes);
      if (auto strides = strides_of(position, seen.sizes.size())) found = {value, position.constant, *std::move(strides)};
    }
    if (is_end) return found;
    Read read = reads_of(graph, graph.nodes[producer], at, space).at(0);
    value = read.operand;
    at = std::move(read.at);
  }
}

int64_t product_columns(const Graph& graph, const Node& node) {
  const Sizes& a = graph.values[node.in[0]].sizes;
  const Value& result = graph.values[node.out[0]];
  return result.count == 0 ? 0 : result.count / (a[0] * a[1]);
}

std::optional<StridedMatrix> strided_matrix(const Graph& graph, ValueId value, const Options& options) {
  const auto view = strided_view(graph, value);
  if (!view) return std::nullopt;
  const StridedMatrix matrix{view->value, view->offset, view->strides[0], view->strides[1], view->strides[2]};
  const Sizes& sizes = graph.values[value].sizes;
  if (options.blas_operands && !blas_matrix(matrix, sizes[1], sizes[2])) return std::nullopt;
  return matrix;
}

std::optional<BlasMatrix> blas_matrix(const StridedMatrix& matrix, int64_t rows, int64_t columns) {
  if (matrix.offset < 0 || matrix.batch < 0) return std::nullopt;
  // The stride of a dimension of one element says nothing.
  if ((matrix.column == 1 || columns == 1) && (matrix.row >= columns || rows == 1)) {
    return BlasMatrix{true, rows == 1 ? columns : matrix.row};
  }
  if ((matrix.row == 1 || rows == 1) && matrix.column >= rows) return BlasMatrix{false, matrix.column};
  return std::nullopt;
}

}  // namespace ltc::kernels
