// Sizes that vary from call to call: the dimensions of a function, and formulas of them.
//
// Immutable; any thread. Errors: INVALID_ARGUMENT for sizes that a call may not have, DATA_CORRUPT for formulas that do not fit.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/ir/graph.h"

namespace ltc::deploy {

struct Dimension;
using Sizes = std::vector<int64_t>;  // by dimension

// floor((scale * the product of the dimensions + offset) / divisor). Without dimensions the product is 0. One may be there twice.
struct Formula {
  std::vector<uint32_t> dimensions;
  int64_t scale = 1, offset = 0, divisor = 1;

  // Throws where the value is too large for 64 bits.
  int64_t value(std::span<const int64_t> sizes) const;
  std::string text(std::span<const Dimension> dimensions) const;  // "(2*batch+1)"
  // The dimension that this is, without more; kNone where it is none.
  uint32_t plain_dimension() const;
};

// A size with a name, such as that of a batch. The inputs say what it is; else it follows from the dimensions before it.
struct Dimension {
  std::string name;
  int64_t min = 0, max = INT64_MAX;
  int64_t example = 0;      // that the graph in the archive has
  std::vector<Formula> is;  // one of a dimension that follows from others, else none
};

Sizes examples_of(std::span<const Dimension> dimensions);

// A number of a graph that a formula gives: a size of a value, or a number in an attribute of a node.
struct GraphNumber {
  uint32_t owner;  // the value, or the node
  uint32_t attr;   // kNone for a size; else the index among the node's attributes
  uint32_t element;
};

struct SizeRule {
  Formula formula;
  std::vector<GraphNumber> places;
};

// The type with other sizes. Declared strides keep their order in memory. Throws INVALID_ARGUMENT where no value has them.
TypeId resized(const Type& type, const std::vector<int64_t>& sizes);

// The example graph with the numbers that the rules give for these sizes. Throws
// DATA_CORRUPT for a place that the graph does not have, else as resized().
Graph with_sizes(const Graph& example, std::span<const SizeRule> rules, std::span<const int64_t> sizes);

}  // namespace ltc::deploy
