#include "core/decompose/decompose.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/decompose/rules/families.h"
#include "core/decompose/rules/pairs.h"
#include "core/ir/substitution.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc::decompose {
namespace {

// Deeper than any chain of rules; a rule that leads back to itself ends here and is found by its own test.
constexpr int kMaxSteps = 12;

// A graph with, per node, the node of the first graph that it computes.
struct Trial {
  Graph graph;
  std::vector<uint32_t> origins;
  bool changed = false;
};

void check_results(const Call& call, const Node& node, const Results& results) {
  if (results.values.empty()) return;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!call.wants(i)) continue;
    ensure(i < results.values.size() && results.values[i], op_name(node.op), ": its rule gives no result ", i);
    const Val& value = results.values[i];
    ensure(value.sizes() == call.result(i).sizes, op_name(node.op), ": its rule gives result ", i, " of other sizes");
  }
}

bool has(const Graph& graph, const Node& node, bool (*property)(DType)) {
  const auto holds = [&](ValueId value) { return value != kNone && property(graph.type(value).dtype); };
  return std::ranges::any_of(node.inputs, holds) || std::ranges::any_of(node.outputs, holds);
}
bool is_double_complex(DType dtype) { return is_complex(dtype) && dtype != DType::kC64; }

// The same bits in another type of that size.
bool is_plain_bitcast(const Graph& graph, const Node& node) {
  return op_name(node.op) == "aten::view.dtype" && graph.type(node.inputs[0]).sizes == graph.type(node.outputs[0]).sizes;
}

// Complex numbers have rules of their own, as pairs of F32; nothing takes apart wider or narrower ones.
Rule rule_for(const Graph& graph, const Node& node) {
  const std::string& name = op_name(node.op);
  if (!has(graph, node, is_complex)) return find_rule(name);
  return has(graph, node, is_double_complex) || is_plain_bitcast(graph, node) ? nullptr : find_complex_rule(name);
}

// Writes what computes the node behind the graph's nodes; `recorded` are the operands that it had before what computes those was
// replaced too. False if there is no rule, or none for this call.
bool expand_node(Graph& graph, const Node& node, std::span<const ValueId> recorded, Substitution& substitute) {
  const std::string& name = op_name(node.op);
  const OpRow* row = find_op_row(name);
  const Rule rule = rule_for(graph, node);
  if (!rule || !row) return false;
  const size_t before = graph.nodes.size();
  Builder builder(graph);
  const Call call(builder, node, *row, recorded);
  Results results = nothing();
  try {
    results = rule(call);
    check_results(call, node, results);
  } catch (const Error& error) {  // a defect of ours: the host still knows the op
    if (is_verifying()) throw;
    log::warn("the decomposition of ", name, at_location(node.location), " is wrong and left out: ", error.what());
    results = nothing();
  }
  if (results.values.empty()) {
    graph.nodes.resize(before);
    return false;
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!call.wants(i)) continue;
    Val value = cast(results.values[i], call.result(i).dtype);
    // Outputs stay distinct, and none is a param.
    if (!substitute.allowed(node.outputs[i], value.id)) {
      value = builder.emit("aten::reshape", {value}, value.dtype(), value.sizes(), {Attr::of_ints("shape", value.sizes())});
    }
    substitute.replace(node.outputs[i], value.id);
  }
  for (size_t i = before; i < graph.nodes.size(); ++i) graph.nodes[i].location = node.location;
  return true;
}

// Replaces the nodes that are unclaimed and not kept, one step. False if there was nothing to replace.
bool expand_step(Trial& trial, const std::vector<uint32_t>& claimed, const std::vector<bool>& kept) {
  std::vector<Node> nodes = std::exchange(trial.graph.nodes, {});
  const std::vector<uint32_t> origins = std::exchange(trial.origins, {});
  Substitution substitute(trial.graph);
  bool replaced = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<ValueId> recorded = nodes[i].inputs;
    substitute.apply(nodes[i].inputs);
    if (claimed[i] || kept[origins[i]] || !expand_node(trial.graph, nodes[i], recorded, substitute)) {
      trial.graph.nodes.push_back(std::move(nodes[i]));
    } else {
      replaced = true;
    }
    trial.origins.resize(trial.graph.nodes.size(), origins[i]);
  }
  substitute.apply(trial.graph.outputs);
  return replaced;
}

Trial expand_all(const Graph& graph, const std::vector<bool>& kept, const AskClaims& claims, std::vector<uint32_t>& claimed) {
  Trial trial{graph, {}};
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) trial.origins.push_back(i);
  for (int step = 0; step < kMaxSteps; ++step) {
    claimed = claims(trial.graph);
    if (!expand_step(trial, claimed, kept)) return trial;
    trial.changed = true;
  }
  fail(Code::kInternal, "decompositions do not come to an end: ", print(trial.graph));
}

}  // namespace

bool decompose(Graph& graph, const AskClaims& claims, std::vector<bool> kept) {
  kept.resize(graph.nodes.size(), false);
  std::vector<uint32_t> claimed;
  Trial trial = expand_all(graph, kept, claims, claimed);
  if (!trial.changed) return false;
  bool again = false;
  for (size_t i = 0; i < trial.graph.nodes.size(); ++i) {
    if (claimed[i] || kept[trial.origins[i]]) continue;
    kept[trial.origins[i]] = again = true;
  }
  if (again) trial = expand_all(graph, kept, claims, claimed);
  graph = std::move(trial.graph);
  return trial.changed;
}

bool is_minimal(const Graph& graph, const Node& node) {
  const OpRow* row = find_op_row(op_name(node.op));
  if (!row || row->tier != Tier::kMinimal) return false;
  if (has(graph, node, is_complex)) return is_plain_bitcast(graph, node);
  const Rule rule = find_rule(row->name);
  if (!rule) return true;
  Graph scratch{graph.types, graph.params, {}, {}};
  Builder builder(scratch);
  return rule(Call(builder, node, *row, node.inputs)).values.empty();
}

Graph minimal_form(Graph graph) {
  decompose(graph, [](const Graph& g) {
    std::vector<uint32_t> minimal;
    for (const Node& node : g.nodes) minimal.push_back(is_minimal(g, node));
    return minimal;
  });
  return graph;
}

std::vector<Decomposition> all_decompositions() {
  std::vector<Decomposition> all;
  for (const auto& family : kFamilies) {
    const auto rules = family();
    all.insert(all.end(), rules.begin(), rules.end());
  }
  return all;
}

Rule find_rule(std::string_view op) {
  static const auto* rules = [] {
    auto* table = new std::unordered_map<std::string_view, Rule>();
    for (const auto& [name, rule] : all_decompositions()) {
      ensure(table->emplace(name, rule).second, "two decompositions of ", name);
    }
    return table;
  }();
  const auto it = rules->find(op);
  return it == rules->end() ? nullptr : it->second;
}

}  // namespace ltc::decompose
