#include "torchscript/graph/graph_editor.h"

#include <torch/csrc/jit/ir/constants.h>

#include <set>

namespace ltc::torchscript {

using torch::jit::Node;
using torch::jit::Value;

constexpr size_t kMostTerms = 4096;  // what several terms share counts for each: doublings would have no end

bool GraphEditor::is(const Node& node, std::string_view name, std::string_view overload) const {
  const auto origin = program_.origins.find(&node);
  return origin != program_.origins.end() && !is_symbolic(node) && origin->second.op.operator_name().name == name &&
         origin->second.op.operator_name().overload_name == overload;
}

bool GraphEditor::is_reshape(const Node& node) const {
  return is(node, "ltc_torchscript::reshape") || is(node, "ltc_torchscript::view");
}

Value* GraphEditor::call(const c10::OperatorName& name, c10::ArrayRef<Value*> inputs, std::vector<int64_t> sizes,
                         const Value& like) {
  return call(name, inputs, TensorSpec{spec_of(like).dtype, std::move(sizes)}, *like.node()).output();
}

Node& GraphEditor::call(const c10::OperatorName& name, c10::ArrayRef<Value*> inputs, c10::ArrayRef<TensorSpec> results,
                        const Node& like) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(), name.overload_name.c_str());
  const auto kind = torch::jit::Symbol::fromQualString(name.name);
  Node* node = program_.graph->insertNode(program_.graph->create(kind, inputs, results.size()));
  for (size_t i = 0; i < results.size(); ++i) node->output(i)->setType(tensor_type(results[i]));
  program_.origins.emplace(node, Origin{op, program_.origins.at(&like).node});
  return *node;
}

Value* GraphEditor::list(c10::ArrayRef<Value*> tensors) {
  return program_.graph->insertNode(program_.graph->createList(c10::TensorType::get(), tensors))->output();
}

void GraphEditor::replace(Node& node, Value& by) {
  node.output(0)->replaceAllUsesWith(&by);
  std::set<Node*> unused = {&node};
  while (!unused.empty()) {
    Node* const gone = unused.extract(unused.begin()).value();
    if (gone->kind() == torch::jit::prim::Param || gone->hasUses()) continue;
    for (Value* input : gone->inputs()) unused.insert(input->node());
    program_.origins.erase(gone);
    gone->destroy();
  }
}

void GraphEditor::rename(Node& node, const c10::OperatorName& name) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(), name.overload_name.c_str());
  const torch::jit::WithInsertPoint before(&node);
  Node* const renamed = program_.graph->insertNode(
      program_.graph->create(torch::jit::Symbol::fromQualString(name.name), node.inputs(), node.outputs().size()));
  renamed->copyMetadata(&node);
  for (size_t i = 0; i < node.outputs().size(); ++i) renamed->output(i)->setType(node.output(i)->type());
  node.replaceAllUsesWith(renamed);
  program_.origins.emplace(renamed, Origin{op, program_.origins.at(&node).node});
  program_.origins.erase(&node);
  node.destroy();
}

bool GraphEditor::is_sum(const Node& node) const {
  if (!is(node, "aten::add", "Tensor") || spec_of(*node.input(0)) != spec_of(*node.output()) ||
      spec_of(*node.input(1)) != spec_of(*node.output())) {
    return false;
  }
  return is_one(*node.input(2));
}

std::vector<Node*> GraphEditor::whole_sums(const IsTerm& is_term) const {
  std::vector<Node*> sums;
  for (Node* node : program_.graph->nodes()) {
    if (is_sum(*node) && !is_term(*node->output())) sums.push_back(node);
  }
  return sums;
}

Values GraphEditor::terms_of(Node& sum, const IsTerm& is_term) const {
  Values open = {sum.input(1), sum.input(0)}, terms;
  while (!open.empty()) {
    if (terms.size() == kMostTerms) return {};
    Value* const value = open.back();
    open.pop_back();
    if (is_sum(*value->node()) && is_term(*value)) {
      open.push_back(value->node()->input(1));
      open.push_back(value->node()->input(0));
    } else {
      terms.push_back(value);
    }
  }
  return terms;
}

std::optional<std::vector<int64_t>> constant_ints(const Value& value) {
  const auto constant = torch::jit::toIValue(&value);
  return constant && constant->isIntList() ? std::optional(constant->toIntVector()) : std::nullopt;
}

std::optional<int64_t> constant_int(const Value& value) {
  const auto constant = torch::jit::toIValue(&value);
  return constant && constant->isInt() ? std::optional(constant->toInt()) : std::nullopt;
}

bool is_one(const Value& value) {
  const auto constant = torch::jit::toIValue(&value);
  return constant && constant->isScalar() && constant->toScalar().equal(1);
}

}  // namespace ltc::torchscript
