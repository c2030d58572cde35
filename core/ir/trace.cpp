#include "core/ir/trace.h"

#include <algorithm>

namespace ltc {
namespace {

// Marks what the roots need, from the last record to the first: operands always stand before their users.
std::vector<bool> find_live(const Trace& trace, std::span<const Root> roots) {
  std::vector<bool> live(trace.records.size(), false);
  for (const Root& root : roots) live[root.value] = true;
  for (size_t i = trace.records.size(); i-- > 0;) {
    if (!live[i]) continue;
    const Record& record = trace.records[i];
    if (record.op == kOpResult) {
      live[record.in[0]] = true;
    } else {
      for (const ValueId input : trace.inputs(record)) {
        if (input != kNone) live[input] = true;
      }
    }
  }
  return live;
}

}  // namespace

bool Trace::reads_values(ValueId value) const {
  const Record* record = &records[value];
  if (record->op == kOpParam) return true;
  if (record->op == kOpResult) record = &records[record->in[0]];
  return std::ranges::any_of(inputs(*record), [&](ValueId input) { return input != kNone && records[input].op != kOpScalar; });
}

TraceGraph build_graph(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations) {
  const std::vector<bool> live = find_live(trace, roots);
  TraceGraph result;
  Graph& graph = result.graph;
  std::vector<ValueId> renamed(trace.records.size(), kNone);
  std::vector<uint32_t> param_of(trace.records.size(), kNone);
  std::vector<size_t> node_of(trace.records.size());
  uint32_t buffers = 0, scalars = 0;
  size_t nodes = 0;
  for (size_t i = 0; i < trace.records.size(); ++i) {
    const Record& record = trace.records[i];
    const bool scalar = record.op == kOpScalar;
    if (scalar || record.op == kOpParam) {
      const uint32_t index = scalar ? scalars++ : buffers++;
      if (!live[i]) continue;
      (scalar ? result.scalars : result.buffers).push_back(index);
      param_of[i] = static_cast<uint32_t>(graph.params.size());
      renamed[i] = graph.add_param(record.type, scalar);
    } else if (record.op == kOpResult) {
      const ValueId node = record.in[0];
      if (!live[node]) continue;
      if (live[i]) renamed[i] = graph.add_value(record.type);
      graph.nodes[node_of[node]].outputs.push_back(renamed[i]);
    } else {
      const size_t index = nodes++;
      if (!live[i]) continue;
      Node node{record.op, record.attrs, {}, {}};
      if (index < locations.size()) node.location = locations[index];
      for (const ValueId input : trace.inputs(record)) node.inputs.push_back(input == kNone ? kNone : renamed[input]);
      if (record.type != kNoType) renamed[i] = graph.add_value(record.type);  // else the first result is undefined
      node.outputs = {renamed[i]};
      node_of[i] = graph.nodes.size();
      graph.nodes.push_back(std::move(node));
    }
  }
  for (const Root& root : roots) {
    if (root.replaces != kNone && param_of[root.replaces] != kNone) {
      Param& param = graph.params[param_of[root.replaces]];
      const Type &old = graph.type(param.value), &now = type_of(trace.records[root.value].type);
      if (param.alias_output == kNone && old.dtype == now.dtype && old.sizes == now.sizes) {
        param.alias_output = static_cast<uint32_t>(graph.outputs.size());
      }
    }
    graph.outputs.push_back(renamed[root.value]);
  }
  return result;
}

}  // namespace ltc
