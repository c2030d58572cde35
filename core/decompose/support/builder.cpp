#include "core/decompose/support/builder.h"

namespace ltc::decompose {

std::vector<Val> Builder::emit_several(std::string_view op, const std::vector<Val>& inputs, std::span<const TypeId> types,
                                       AttrList attrs) {
  Node node{intern_op(op), intern_attrs(attrs)};
  for (const Val& input : inputs) node.inputs.push_back(input.id);
  std::vector<Val> results;
  for (const TypeId type : types) {
    node.outputs.push_back(graph_.add_value(type));
    results.push_back(value(node.outputs.back()));
  }
  graph_.nodes.push_back(std::move(node));
  return results;
}

Val Builder::emit(std::string_view op, const std::vector<Val>& inputs, DType dtype, const Ints& sizes, AttrList attrs) {
  const TypeId type = intern_contiguous(dtype, sizes);
  return emit_several(op, inputs, {&type, 1}, std::move(attrs))[0];
}

Val Builder::emit(std::string_view op, std::initializer_list<Val> inputs, DType dtype, const Ints& sizes, AttrList attrs) {
  return emit(op, std::vector<Val>(inputs), dtype, sizes, std::move(attrs));
}

}  // namespace ltc::decompose
