// Appends nodes of the minimal opset to a graph.
#pragma once

#include "core/decompose/support/value.h"

namespace ltc::decompose {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  Val value(ValueId id) { return {this, id}; }

  // A node of one result, contiguous.
  Val emit(std::string_view op, std::initializer_list<Val> inputs, DType dtype, const Ints& sizes, AttrList attrs = {});
  Val emit(std::string_view op, const std::vector<Val>& inputs, DType dtype, const Ints& sizes, AttrList attrs = {});
  std::vector<Val> emit_several(std::string_view op, const std::vector<Val>& inputs, std::span<const TypeId> types,
                                AttrList attrs = {});

 private:
  Graph& graph_;
};

}  // namespace ltc::decompose
