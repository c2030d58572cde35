// Graphs that differ in numbers only: what one executable for all of them must know (ltc/symbolic.h).
#pragma once

#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/ir/graph.h"
#include "ltc/symbolic.h"

namespace ltc {

// A graph taken apart: its structure, and its numbers, which are the sizes of its values and the whole numbers in its attributes.
// Two graphs are one, but for locations and declared strides, which no plugin sees, exactly where both parts are equal.
struct GraphSkeleton {
  GraphSkeleton() = default;
  explicit GraphSkeleton(const Graph& graph);

  std::vector<uint32_t> structure;
  std::vector<int64_t> numbers;             // sizes of params, then of other values, then of attributes
  std::vector<ltc_symbolic_number> places;  // of the numbers; without formulas
  size_t param_sizes = 0, sizes = 0;        // how many of the numbers they are
};

// The graph with zeros for its numbers: of graphs that differ in numbers only, the same.
Graph without_numbers(Graph graph);

// A graph some of whose numbers are formulas; without any it stands for itself.
class SymbolicGraph {
 public:
  explicit SymbolicGraph(const GraphSkeleton& graph) : structure_(graph.structure), example_(graph.numbers) {}

  // A graph with formulas for the numbers in which the two differ. Returns nothing if the two differ in structure. Returns
  // nothing if they differ in a size that is 0 or 1 in one of them, since such a size may broadcast.
  static std::optional<SymbolicGraph> unify(const SymbolicGraph& then, const GraphSkeleton& now);

  // The values of the symbols for which this graph equals `graph`; every number is compared. Returns nothing if there are none.
  std::optional<std::vector<int64_t>> match(const GraphSkeleton& graph) const;

  bool has_structure_of(const GraphSkeleton& graph) const { return graph.structure == structure_; }
  size_t symbol_count() const { return definitions_.size(); }
  ltc_symbolic_sizes table() const;  // borrows the numbers
  const std::vector<ltc_symbolic_number>& numbers() const { return symbolic_; }
  uint64_t size_bytes() const;  // about what it takes

  // For the disk. `example`: the graph that it was made with last.
  void write(ByteWriter& out, const Graph& example) const;
  // Throws Error(kDataCorrupt) for what write() cannot have written.
  static SymbolicGraph read(ByteReader& in);

 private:
  ltc_symbolic_number formula(const GraphSkeleton& now, const SymbolicGraph& then, uint32_t number) const;

  std::vector<uint32_t> structure_;
  std::vector<int64_t> example_;
  std::vector<uint32_t> definitions_;          // by symbol: the number that it is
  std::vector<uint32_t> changed_;              // which of the numbers are formulas,
  std::vector<ltc_symbolic_number> symbolic_;  // and these
};

}  // namespace ltc
