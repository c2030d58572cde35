#include "products.h"

#include "candidates.h"
#include "reads.h"

namespace ltc::kernels {

std::optional<StridedMatrix> strided_matrix(const Graph& graph, ValueId value, const Options& options) {
  const Sizes sizes = graph.values[value].sizes;
  IndexSpace space;
  Coords at;
  VarId vars[3];
  for (size_t dim = 0; dim < 3; ++dim) {
    vars[dim] = space.add({.extent = sizes[dim]});
    at.push_back(space.of_var(vars[dim]));
  }
  while (graph.values[value].producer != kNone) {
    const Node& node = graph.nodes[graph.values[value].producer];
    const bool is_view =
        node.kind >= Kind::kReshape && node.kind <= Kind::kStrided && node.kind != Kind::kPad && node.kind != Kind::kCat;
    if (!is_view) break;
    Read read = reads_of(graph, node, at, space).at(0);
    value = read.operand;
    at = std::move(read.at);
  }
  if (graph.is_scalar_param(value)) return std::nullopt;
  const Index position = space.linear(at, graph.values[value].sizes);
  StridedMatrix matrix{value, position.constant, 0, 0, 0};
  for (const Term& term : position.terms) {
    if (term.digit.div != 1 || term.digit.mod != 0 || term.digit.var > vars[2]) return std::nullopt;
    (term.digit.var == vars[0] ? matrix.batch : term.digit.var == vars[1] ? matrix.row : matrix.column) = term.factor;
  }
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

void pack_products(Graph& graph, const Options& options) {
  if (options.tile_columns == 0) return;
  Graph packed = graph;
  packed.nodes.clear();
  const auto append = [&](Node node) {
    for (const ValueId value : node.out) {
      if (value != kNone) packed.values[value].producer = static_cast<NodeId>(packed.nodes.size());
    }
    packed.nodes.push_back(std::move(node));
  };
  for (Node& node : graph.nodes) {
    if (node.kind == Kind::kProduct && is_alone(graph, node, options)) {
      const Sizes b = graph.values[node.in[1]].sizes;
      const int64_t tiles = (b[2] + options.tile_columns - 1) / options.tile_columns;
      node.in[1] = packed.add_node(Kind::kPack, {node.in[1]}, {}, graph.values[node.in[1]].dtype,
                                   {b[0], tiles, b[1], options.tile_columns}, node.source);
    }
    append(std::move(node));
  }
  graph = std::move(packed);
}

}  // namespace ltc::kernels
