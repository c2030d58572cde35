// Sizes, and numbers in attributes, that differ from run to run (ltc/symbolic.h).
//
// Each formula has a stand-in: a number that occurs nowhere else in the graph. The graph is lowered, rewritten and compiled with
// the stand-ins as its numbers. So two sizes are equal there if they are equal in each run, and only then. A run puts its own
// numbers in their place. No rewrite may compute with a stand-in, so rewrites leave symbolic nodes as they are.
#pragma once
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ltc/archive.hpp"
#include "ltc/symbolic.h"

namespace ltc::torchscript {

class Symbols {
 public:
  size_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  bool contains(int64_t number) const { return formulas_.contains(number); }
  bool contains_any(c10::ArrayRef<int64_t> numbers) const;
  // The same for a constant argument.
  bool is_part_of(const c10::IValue& constant) const;

  // The number of a run in place of the program's `number`. `values`: those of the symbols.
  int64_t value(int64_t number, c10::ArrayRef<int64_t> values) const;
  std::vector<int64_t> values_of(c10::ArrayRef<int64_t> numbers, c10::ArrayRef<int64_t> values) const;
  c10::IValue constant_value(const c10::IValue& constant, c10::ArrayRef<int64_t> values) const;

  std::string text() const;  // a line for each stand-in

 private:
  friend class GeneralGraph;
  friend void archive(plugin::Archive& io, Symbols& symbols);
  struct Formula {
    uint32_t symbol;
    int64_t scale, offset;
  };
  size_t count_ = 0;
  std::unordered_map<int64_t, Formula> formulas_;  // by stand-in
};

// A copy of a graph with the stand-ins in place. Borrows names, operands and strings.
class GeneralGraph {
 public:
  // Fails with INVALID_ARGUMENT if `sizes` names what the graph does not have.
  GeneralGraph(const ltc_graph& graph, const ltc_symbolic_sizes& sizes);
  GeneralGraph(const GeneralGraph&) = delete;
  GeneralGraph& operator=(const GeneralGraph&) = delete;

  const ltc_graph& graph() const { return graph_; }
  const Symbols& symbols() const { return symbols_; }

 private:
  struct Attr {
    ltc_attr attr;
    std::vector<int64_t> ints;
    std::vector<double> floats;
  };
  struct Node {
    ltc_node node;
    std::vector<Attr> attrs;
    std::vector<const ltc_attr*> pointers;
  };
  struct Type {
    ltc_type type;
    std::vector<int64_t> sizes;
  };
  void copy(const ltc_graph& graph);
  void put(const ltc_symbolic_number& number);
  int64_t stand_in(const ltc_symbolic_number& number);

  ltc_graph graph_;
  Symbols symbols_;
  std::unordered_set<int64_t> taken_;  // numbers of the graph, and stand-ins
  int64_t last_;                       // stand-in
  std::vector<Type> types_;
  std::vector<Node> nodes_;
  std::vector<const ltc_type*> type_pointers_;
  std::vector<const ltc_node*> node_pointers_;
};

// A node that has a stand-in: in an attribute, or in a size of an operand or a result.
bool is_symbolic(const torch::jit::Node& node);
void mark_symbolic(torch::jit::Node& node);

}  // namespace ltc::torchscript
