// The writer of a kernel of the IR for a cluster: the kernel, its builder, its emitter.
#pragma once
#include <algorithm>
#include <string>
#include <utility>

#include "kernels/plan/emit.h"
#include "kernels/plan/plan.h"

namespace ltc::kernels {

struct KernelWriter {
  KernelWriter(Plan& made, const Options& options, const Cluster& cluster, int64_t items)
      : plan(made),
        builder(kernel, items),
        emitter(
            made.graph, kernel, builder,
            [&made, &cluster](ValueId value) {
              return made.fusion.is_stored[value] && !std::ranges::count(cluster.members, value);
            },
            options.abilities, made.faults) {}
  Index item() const { return kernel.space.of_var(kernel.item); }
  // The element of a value whose position this is.
  Ref at(ValueId value, const Index& position) {
    return emitter.at(value, kernel.space.split(position, plan.graph.values[value].sizes));
  }
  // A formula in a block, though its operands do not need it.
  Ref apply_in(BlockId block, std::string_view formula, ltc_dtype of, ltc_dtype result, std::vector<Ref> args) {
    return builder.add_in(block,
                          {.code = Code::kFormula, .dtype = result, .args = std::move(args), .of = of, .formula = formula});
  }
  // The last step of the plan.
  void finish(const Node& node, std::string label) {
    Step step{std::move(kernel), {}, {}, node.source, std::move(label)};
    step.buffers = std::get<Kernel>(step.work).buffers;
    step.scalars = std::get<Kernel>(step.work).scalars;
    plan.steps.push_back(std::move(step));
  }

  Plan& plan;
  Kernel kernel;
  Builder builder;
  Emitter emitter;
};

}  // namespace ltc::kernels
