// The program of a cached trace: steps over slots. A slot holds one buffer during a run.
//
// Immutable once built; any number of runs may use it at once. Gone before the device that it was compiled for.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/compile/passes/graph_stage.h"
#include "core/ir/graph.h"
#include "ltc/plugin.h"

namespace ltc {

// One segment: an executable of the plugin's, or nodes for the host to compute.
struct Step {
  bool on_device = false;
  Graph graph;                                 // its params and outputs are those of the step
  std::shared_ptr<ltc_executable> executable;  // null for a host step
  std::vector<uint32_t> nodes;                 // by node here, the node of the program's graph
  std::vector<uint32_t> origin;                // of a device step: by node of the graph that the plugin was given, the node here
  std::vector<uint32_t> inputs;                // slot of each buffer param
  std::vector<uint32_t> scalars;               // which of the run's scalars each scalar param is
  std::vector<uint32_t> outputs;               // slot of each output, filled by no other step
  std::vector<int64_t> symbols;                // their values, for an executable that serves many sizes (ltc/symbolic.h)
  bool reused = false;                         // the executable was compiled for another program
  std::vector<std::string> reasons;            // of a host step, by node: why the plugin does not run it
  std::vector<uint32_t> released;              // slots that nothing reads after this step; never one of Program::outputs
};

struct Program {
  const uint64_t id = next_id();  // of no other program of the process; never 0
  Graph graph;                    // all of it, after the passes
  std::vector<TypeId> slots;      // the first input_count are the graph's buffer params in order
  size_t input_count = 0;
  size_t scalar_count = 0;
  std::vector<uint32_t> outputs;   // slot of each output of the graph, all distinct
  std::vector<Step> steps;         // in running order
  uint32_t generation = 0;         // of the device's opening for which it was compiled
  bool is_quick = false;           // compiled with less than the usual effort
  bool is_interim = false;         // the host computes it until the plugin's program is compiled
  std::string saved_as;            // its key on the disk, if an earlier process has compiled it
  std::vector<GraphStage> stages;  // as recorded, then after each change; where CompileTarget::keeps_stages

  // How long a run takes its thread, kept by the queue. For an asynchronous plugin that is the time to submit. Follows shorter
  // runs at once and longer ones slowly: a run that was disturbed is not typical.
  mutable std::atomic<int64_t> typical_ns{INT64_MAX};
  mutable uint32_t lookups = 0;                      // that found one that is_quick; guarded as the cache is
  mutable std::atomic<bool> failed_at_first{false};  // in its first run: perhaps the file is to blame
  void note_run(int64_t ns) const {
    const int64_t before = typical_ns.load(std::memory_order_relaxed);
    typical_ns.store(ns < before ? ns : before + (ns - before) / 8, std::memory_order_relaxed);
  }

 private:
  static uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
  }
};

// Calls visit(node, reason) for each node that the host computes, in running order.
template <typename Visit>
void for_each_host_node(const Program& program, Visit visit) {
  for (const Step& step : program.steps) {
    for (size_t i = 0; !step.on_device && i < step.graph.nodes.size(); ++i) visit(step.graph.nodes[i], step.reasons[i]);
  }
}

}  // namespace ltc
