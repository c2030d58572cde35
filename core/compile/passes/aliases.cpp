#include "core/compile/passes/passes.h"

namespace ltc {

void aliases(Graph& graph) {
  for (Param& param : graph.params) {
    if (param.alias_output == kNone) continue;
    const bool fits = param.alias_output < graph.outputs.size() &&
                      same_shape(graph.type(param.value), graph.type(graph.outputs[param.alias_output]));
    if (!fits) param.alias_output = kNone;
  }
}

}  // namespace ltc
