// Kernels over rows for devices whose threads meet in blocks, CUDA's: a row is shared by the lanes of a block, neighbouring
// threads read neighbouring elements, and what a loop folds is folded once more across the lanes. A scan goes along the row by as
// many elements as there are lanes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/graph/ir.h"
#include "kernels/print/dialect.h"
#include "kernels/print/vectors.h"

namespace ltc::kernels {

// A block of `rows` times `lanes` threads, each row's lanes side by side, or where `columns` each lane's rows.
struct BlockShape {
  int64_t rows, lanes;
  bool columns;
  int64_t threads() const { return rows * lanes; }
};

// The one place that chooses, by the kernel's sizes and how it reads; none: a thread does whole rows.
std::optional<BlockShape> block_shape(const Kernel& kernel, int64_t device_threads);

// The statements of a thread of such a block. `count`: the number of rows, as text.
std::string block_statements(const Kernel& kernel, const BlockShape& shape, const std::string& count, const Dialect& dialect,
                             const ScalarText& scalar);

}  // namespace ltc::kernels
