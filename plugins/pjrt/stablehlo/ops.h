// The table of ops: which nodes are lowered, and how they are written.
#pragma once
#include <span>

#include "ltc/graph.hpp"
#include "pjrt/stablehlo/module.h"

namespace ltc::pjrt {

// One node that is being lowered.
struct Call {
  Module& m;
  const plugin::Node& node;
  std::string_view formula;   // of the row
  Values inputs, numbers;     // tensors that are given; scalar params
  std::vector<Type> outputs;  // dtype 0: a result that is not wanted
  size_t next_number = 0;

  const Value& in(size_t i) const { return inputs.at(i); }
  const Type& type() const { return outputs[0]; }
  Sizes integers(std::string_view name) const;      // one or several
  int64_t dim(int64_t otherwise = 0) const;         // attribute "dim", counted from the front; of rank 0 it is 0
  Sizes dims(std::string_view name = "dim") const;  // the same of several; none is all
  Value number(std::string_view name);              // rank 0: an attribute, or else the next scalar param; else 0
};

using Emit = Values (*)(Call&);

// types   operands, a colon, results, as plugin::matches_types reads them.
// dtypes  the op's, by the kinds of Element.
// formula of the elements, if there is no emitter; else what is left to tell emitters that rows share.
// The first row that fits counts where two have one name.
struct Row {
  std::string_view name, types, dtypes, formula;
  Emit emit = nullptr;
};

std::span<const Row> elementwise_ops();
std::span<const Row> movement_ops();
std::span<const Row> reduction_ops();
std::span<const Row> index_ops();
std::span<const Row> product_ops();
std::span<const Row> creation_ops();

// The op set's conversion to any of its dtypes.
Value cast(Module& m, const Value& value, ltc_dtype dtype);
// By element of an array of `sizes`: the sum of offset and coordinates times strides. Along `dim` the given value counts instead
// of the coordinate.
Value positions(Module& m, const Sizes& sizes, const Sizes& strides, int64_t offset, int64_t dim = 0,
                const Value* along_dim = nullptr);
// Elements of the row-major contents at positions, which lie inside.
Value take(Module& m, const Value& from, const Value& positions);
// The contents, one-dimensional, with elements written at positions, of which those outside are skipped. The formula joins what
// was there, x, and what is written, y.
Value put(Module& m, const Value& to, const Value& positions, const Value& elements, std::string_view formula);

}  // namespace ltc::pjrt
