#include "conformance/ops/reference.h"

#include <unordered_map>

#include "conformance/ops/reference_call.h"

namespace ltc::conformance {
namespace {

const auto& references() {
  static const auto* table = [] {
    auto* all = new std::unordered_map<std::string_view, void (*)(const ReferenceCall&)>();
    for (const auto family : {elementwise_references(), movement_references(), reduction_references(), product_references()}) {
      for (const Reference& reference : family) all->emplace(reference.op, reference.run);
    }
    return all;
  }();
  return *table;
}

}  // namespace

bool has_reference(std::string_view op) { return references().contains(op); }

std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs, const std::vector<Scalar>& scalars) {
  std::vector<Array> values(graph.types.size());
  size_t input = 0, scalar = 0;
  for (const Param& param : graph.params) {
    Array& value = values[param.value];
    if (!param.scalar) {
      value = inputs[input++];
      continue;
    }
    value = Array(graph.type(param.value).dtype, {});
    const size_t size = std::min(value.bytes.size(), sizeof(Scalar));
    std::memcpy(value.bytes.data(), &scalars[scalar++], size);
  }
  for (const Node& node : graph.nodes) {
    for (const ValueId out : node.outputs) {
      if (out != kNone) values[out] = Array(graph.type(out).dtype, graph.type(out).sizes);
    }
    const auto it = references().find(op_name(node.op));
    ensure(it != references().end(), "no reference for ", op_name(node.op));
    it->second(ReferenceCall(node, values));
  }
  std::vector<Array> results;
  for (const ValueId out : graph.outputs) results.push_back(values[out]);
  return results;
}

}  // namespace ltc::conformance
