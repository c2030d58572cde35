// Values as a library reads them: anywhere in a buffer, with any strides.
#pragma once
#include <cstdint>
#include <optional>

#include "kernels/graph/graph.h"
#include "kernels/graph/options.h"

namespace ltc::kernels {

// A [batch, rows, columns] that lies in a buffer with any strides.
struct StridedMatrix {
  ValueId value;
  int64_t offset, batch, row, column;  // strides in elements
  bool operator==(const StridedMatrix&) const = default;
};

// A value of any rank that lies so.
struct StridedView {
  ValueId value;
  int64_t offset;
  Sizes strides;  // one per dim
};
// Through views, as far as strides can say them, and no further than to a value with more elements, unless that is where they
// end.
std::optional<StridedView> strided_view(const Graph& graph, ValueId value);
// The columns of a product's result, which may have any sizes (epilogues.h).
int64_t product_columns(const Graph& graph, const Node& node);

// A value of rank 3 as a matrix with strides that the library takes; none: the value needs a buffer of its own.
std::optional<StridedMatrix> strided_matrix(const Graph& graph, ValueId value, const Options& options);

// A matrix as BLAS takes it: rows or columns that lie side by side.
struct BlasMatrix {
  bool row_major;
  int64_t leading;  // elements from one row, or column, to the next
};
std::optional<BlasMatrix> blas_matrix(const StridedMatrix& matrix, int64_t rows, int64_t columns);

}  // namespace ltc::kernels
