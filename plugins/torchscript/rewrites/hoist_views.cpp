#include <algorithm>
#include <vector>

#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

bool is_constant(const Value* value) { return value->node()->kind() == torch::jit::prim::Constant; }

// A view of one operand, whose other arguments are constants.
bool is_view(const Program& program, const Node& node) {
  const auto origin = program.origins.find(&node);
  if (origin == program.origins.end() || node.inputs().empty()) return false;
  const auto& returns = origin->second.op.schema().returns();
  return returns.size() == 1 && returns[0].alias_info() && !returns[0].alias_info()->isWrite() &&
         std::all_of(node.inputs().begin() + 1, node.inputs().end(), is_constant);
}

}  // namespace

void hoist_views(Program& program) {
  std::unordered_map<const Value*, Node*> last;  // view of a value
  auto nodes = program.graph->nodes();
  for (Node* node : std::vector<Node*>(nodes.begin(), nodes.end())) {
    if (!is_view(program, *node)) continue;
    Node*& after = last.try_emplace(node->input(0), node->input(0)->node()).first->second;
    node->moveAfter(after);
    for (Value* constant : node->inputs().slice(1)) {
      if (constant->node()->isAfter(node)) constant->node()->moveBefore(node);
    }
    after = node;
  }
}

}  // namespace ltc::torchscript
