#include <algorithm>

#include "core/compile/passes/passes.h"

namespace ltc {
namespace {

// Marks what is read, from the outputs backwards, and strikes unread results.
void strike_unread(Graph& graph) {
  std::vector<bool> read(graph.types.size(), false);
  for (const ValueId output : graph.outputs) read[output] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    bool wanted = false;
    for (ValueId& output : node->outputs) {
      if (output != kNone && !read[output]) output = kNone;
      wanted |= output != kNone;
    }
    for (const ValueId input : node->inputs) {
      if (wanted && input != kNone) read[input] = true;
    }
  }
}

void renumber(Graph& graph) {
  std::vector<ValueId> number(graph.types.size(), kNone);
  std::vector<TypeId> types;
  const auto define = [&](ValueId& value) {
    if (value == kNone) return;
    types.push_back(graph.types[value]);
    value = number[value] = static_cast<ValueId>(types.size() - 1);
  };
  const auto use = [&](ValueId& value) {
    if (value != kNone) value = number[value];
  };
  for (Param& param : graph.params) define(param.value);
  for (Node& node : graph.nodes) {
    std::ranges::for_each(node.inputs, use);
    std::ranges::for_each(node.outputs, define);
  }
  std::ranges::for_each(graph.outputs, use);
  graph.types = std::move(types);
}

}  // namespace

void dce(Graph& graph) {
  strike_unread(graph);
  std::erase_if(graph.nodes, [](const Node& node) {
    return std::ranges::all_of(node.outputs, [](ValueId output) { return output == kNone; });
  });
  renumber(graph);
}

}  // namespace ltc
