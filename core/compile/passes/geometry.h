// Reads through sizes, strides and an offset, expressed by ops that know no strides.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ir/op.h"

namespace ltc {

// Element (i, j, ...) of the result is element offset + i*strides[0] + j*strides[1] + ... of the row-major contents of a source.
struct Geometry {
  std::vector<int64_t> sizes, strides;
  int64_t offset = 0;
};

// Whether the result is all of the source's `element_count` elements in their order.
bool is_row_major(const Geometry& geometry, int64_t element_count);

// One node of a chain: aten::reshape, aten::slice.Tensor, aten::permute or aten::expand.
struct ViewOp {
  const char* op;
  AttrList attrs;
  std::vector<int64_t> sizes;  // of its result
};

// A shortest chain found that turns a source of the given sizes into the geometry's result: empty where the two are the same.
// None where the geometry reads an element along two dims (windows), goes backwards, or leaves the source.
std::optional<std::vector<ViewOp>> decompose(std::span<const int64_t> source_sizes, const Geometry& geometry);

}  // namespace ltc
