// Which elements of its operands an element of a node needs.
#pragma once
#include <vector>

#include "kernels/graph/graph.h"

namespace ltc::kernels {

// Holds where index is in [0, extent) and a multiple of `divisor`.
struct Condition {
  Index index;
  int64_t extent;
  int64_t divisor = 1;
};

struct Read {
  ValueId operand;
  Coords at;
  std::vector<Condition> when = {};  // else the element is not there
};

// The reads of a node that only moves or maps elements. Not for kGather, whose second read depends on what the first gives.
std::vector<Read> reads_of(const Graph& graph, const Node& node, const Coords& at, IndexSpace& space);
// The element of a gather's operand, where its index tensor gave `picked`.
Read gathered(const Graph& graph, const Node& node, const Coords& at, const Index& picked);
// Element r of row `at` of a reduction, or of a scan, whose rows are as long as its dims say.
Read row_element(const Graph& graph, const Node& node, const Coords& at, const Index& r, IndexSpace& space);
// The dims of the operand that a reduction, argmax or scan runs along, ascending.
std::vector<size_t> row_dims(const Graph& graph, const Node& node);
int64_t row_length(const Graph& graph, const Node& node);

// An attribute that names a dim, 0 or more.
size_t dim_of(const Node& node, std::string_view attr, int64_t otherwise, size_t rank);

// Whether the node reads the bytes of its operand's buffer as elements of another size.
bool reads_other_size(const Graph& graph, const Node& node);

}  // namespace ltc::kernels
