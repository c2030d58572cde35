#include "core/ir/graph.h"

#include "core/base/error.h"

namespace ltc {
namespace {

// Pairs the values of two graphs as they are defined in step.
class Pairing {
 public:
  Pairing(const Graph& a, const Graph& b) : a_(a), b_(b), partner_(a.types.size(), kNone) {}

  bool define(ValueId a, ValueId b) {
    if (a == kNone || b == kNone) return a == b;
    if (a_.types[a] != b_.types[b]) return false;
    partner_[a] = b;
    return true;
  }
  bool paired(ValueId a, ValueId b) const { return a == kNone || b == kNone ? a == b : partner_[a] == b; }

 private:
  const Graph &a_, &b_;
  std::vector<ValueId> partner_;
};

bool same_node(const Node& a, const Node& b, Pairing& pairing) {
  if (a.op != b.op || a.attrs != b.attrs) return false;
  if (a.inputs.size() != b.inputs.size() || a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (!pairing.paired(a.inputs[i], b.inputs[i])) return false;
  }
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!pairing.define(a.outputs[i], b.outputs[i])) return false;
  }
  return true;
}

}  // namespace

void Graph::fail_without_value(ValueId value) const {
  if (value == kNone) fail(Code::kInternal, "a result that is not wanted, or an argument that was not given, has no type");
  fail(Code::kInternal, "the graph has no value ", value, "; it has ", types.size());
}

bool same(const Graph& a, const Graph& b) {
  if (a.params.size() != b.params.size() || a.nodes.size() != b.nodes.size() || a.outputs.size() != b.outputs.size())
    return false;
  Pairing pairing(a, b);
  for (size_t i = 0; i < a.params.size(); ++i) {
    const Param &left = a.params[i], &right = b.params[i];
    if (left.scalar != right.scalar || left.alias_output != right.alias_output) return false;
    if (!pairing.define(left.value, right.value)) return false;
  }
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (!same_node(a.nodes[i], b.nodes[i], pairing)) return false;
  }
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!pairing.paired(a.outputs[i], b.outputs[i])) return false;
  }
  return true;
}

}  // namespace ltc
