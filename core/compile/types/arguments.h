// The arguments of a node, read by name from the schema of its row in the op table. Nothing is taken for granted: the node may be
// of a file that was written by hand.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op_schema.h"

namespace ltc::types {

using Dims = std::vector<int64_t>;

class Arguments {
 public:
  // One argument that takes operands: as many as a list has, else one.
  struct Operands {
    std::string_view name;
    bool is_number;
    std::span<const ValueId> values;
  };

  Arguments(const Graph& graph, const Node& node, const OpRow& row);

  // How the node is no call of its schema; empty if it is one. Nothing else may be asked of a node that is none.
  const std::string& violation() const { return violation_; }

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  const std::vector<Operands>& operands() const { return operands_; }
  const OpRow& row() const { return row_; }

  const Type* tensor(std::string_view name) const;  // null: not given
  const Dims& sizes(std::string_view name) const { return tensor(name)->sizes; }
  const Type* first() const;  // operand that is a tensor; null: there is none
  std::span<const ValueId> tensors(std::string_view name) const;

  // Constants; the schema's default where there is no attribute.
  bool given(std::string_view name) const;  // and not None
  int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const { return integer(name) != 0; }
  Dims ints(std::string_view name) const;  // of a single one: a list of one
  const Attr* constant(std::string_view name) const { return find_attr(attrs_of(node_.attrs), name); }

 private:
  std::string take(const OpArg& arg, size_t& next);

  const Graph& graph_;
  const Node& node_;
  const OpRow& row_;
  std::vector<Operands> operands_;
  std::string violation_;
};

}  // namespace ltc::types
