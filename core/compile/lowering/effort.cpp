#include "core/compile/lowering/effort.h"

#include "core/base/env.h"

namespace ltc {
namespace {

// Optimizing a node takes some 20 us. Element-wise nodes that run as one loop save about a nanosecond for each element.
constexpr int64_t kElementsPerNode = 1 << 14;

}  // namespace

Effort default_effort() {
  static const size_t choice = env::choice(env::kEffort);  // auto, 0, 1, 2, 3
  return choice == 0 ? Effort::kUsual : static_cast<Effort>(choice - 1);
}

bool repays_in_one_run(const Graph& graph) {
  int64_t elements = 0;
  for (const Node& node : graph.nodes) {
    for (const ValueId output : node.outputs) {
      if (output != kNone) elements += graph.type(output).element_count;
    }
  }
  return elements / kElementsPerNode > static_cast<int64_t>(graph.nodes.size());
}

}  // namespace ltc
