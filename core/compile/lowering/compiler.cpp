#include "core/compile/lowering/compiler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "core/base/log.h"
#include "core/compile/lowering/claims.h"
#include "core/compile/lowering/error_context.h"
#include "core/compile/lowering/partition.h"
#include "core/compile/lowering/plugin_code.h"
#include "core/compile/lowering/saved_code.h"
#include "core/compile/lowering/symbolic_programs.h"
#include "core/compile/passes/overlap.h"
#include "core/compile/passes/passes.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

using Clock = std::chrono::steady_clock;

struct Target : CompileTarget {
  Effort effort;
  bool only_reuses = false;  // compiles nothing: NotKnown
};

// Code of another program does not serve a segment.
struct NotKnown {};

// A segment with the plugin's form of it, none on the host.
struct Lowered {
  Segment segment;
  std::vector<uint32_t> origin = {};                 // by node of the graph that the plugin was given, the node of the segment
  SymbolicPrograms::Code code = {};                  // with an executable where that of another program serves
  bool reused = false;                               // the executable was compiled for another program
  std::vector<int64_t> symbols = {};                 // of code for many sizes, their values
  std::optional<SymbolicGraph> symbolic_graph = {};  // all that the code will serve, once it is compiled
};

// Null if the plugin refuses a node, whose claim is then withdrawn, or the segment: then all of its claims are.
std::shared_ptr<ltc_program> lower_as_it_is(const Segment& segment, const DemotedGraph& demoted, Claims& claims,
                                            const Target& target) {
  return with_error_context(demoted.graph(), {}, [&]() -> std::shared_ptr<ltc_program> {
    try {
      return lower(demoted.graph(), target);
    } catch (const Error& refusal) {
      if (refusal.code() != Code::kUnsupported) throw;
      log::info("claimed, but not lowered: ", error_text(refusal, demoted.graph()));
      const std::string reason = cat("claimed, but not lowered: ", refusal.what());
      const auto* about_node = dynamic_cast<const host::UnsupportedNode*>(&refusal);
      if (about_node && about_node->node() < demoted.origin.size()) {
        withdraw(claims, segment.nodes[demoted.origin[about_node->node()]], reason);
      } else {
        for (const uint32_t node : segment.nodes) withdraw(claims, node, reason);
      }
      return nullptr;
    }
  });
}

// Null if the plugin refuses it.
std::shared_ptr<ltc_program> lower_symbolic_graph(const Graph& graph, const SymbolicGraph& symbolic_graph, const Target& target) {
  try {
    const ltc_symbolic_sizes sizes = symbolic_graph.table();
    return lower(graph, target, &sizes);
  } catch (const Error& refusal) {
    if (refusal.code() != Code::kUnsupported) throw;
    log::info("not lowered for more than its own sizes: ", error_text(refusal, graph));
    return nullptr;
  }
}

// Finds code that serves the graph, or lowers it for as many sizes as were seen to be wanted.
void lower_symbolic(Lowered& lowered, const Graph& graph, const Target& target) {
  const GraphSkeleton skeleton(graph);
  auto found = target.symbolic->find(skeleton, target.precision);
  const bool is_quick = target.effort < default_effort();
  // The disk has one code of a structure, so it is asked once.
  if (!found && !is_quick && !target.symbolic->has_general(skeleton, target.precision) && load_code(graph, target))
    found = target.symbolic->find(skeleton, target.precision);
  if (found) {
    lowered.code = std::move(found->code);
    lowered.symbols = std::move(found->symbols);
    return;
  }
  if (target.only_reuses) throw NotKnown();
  if (is_quick) return;
  lowered.symbolic_graph = target.symbolic->unify_with_nearest(skeleton, target.precision);
  if (lowered.symbolic_graph->symbol_count() == 0) return;
  lowered.code.program = lower_symbolic_graph(graph, *lowered.symbolic_graph, target);
  if (lowered.code.program) {
    lowered.symbols = *lowered.symbolic_graph->match(skeleton);
  } else {
    lowered.symbolic_graph.emplace(skeleton);
  }
}

// False if the plugin refuses it: then all claims of the segment are withdrawn.
bool compile_segment(Lowered& lowered, Claims& claims, const Target& target) {
  return with_error_context(lowered.segment.graph, lowered.origin, [&] {
    try {
      lowered.code.executable = compile(*lowered.code.program, target.device, target.effort);
      return true;
    } catch (const Error& refusal) {
      if (refusal.code() != Code::kUnsupported) throw;
      log::info("lowered, but not compiled: ", refusal.what());
      for (const uint32_t node : lowered.segment.nodes)
        withdraw(claims, node, cat("lowered, but not compiled: ", refusal.what()));
      return false;
    }
  });
}

// False if the plugin refused a node, or the segment.
bool lower_segment(Lowered& lowered, Claims& claims, const Target& target) {
  DemotedGraph demoted = demote(lowered.segment.graph, target.demotion);
  verify_if_asked(demoted.graph(), "demotion");
  SymbolicPrograms::Code& code = lowered.code;
  if (target.symbolic) lower_symbolic(lowered, demoted.graph(), target);
  if (!code.program && !code.executable) code.program = lower_as_it_is(lowered.segment, demoted, claims, target);
  lowered.origin = std::move(demoted.origin);
  lowered.reused = code.executable != nullptr;
  if (lowered.reused) return true;
  if (!code.program || !compile_segment(lowered, claims, target)) return false;
  if (!lowered.symbols.empty()) save_code(demoted.graph(), *lowered.symbolic_graph, code.executable, target);
  return true;
}

// None if the plugin refused a node.
std::optional<std::vector<Lowered>> try_lower(const Graph& graph, Claims& claims, const Target& target) {
  std::vector<Lowered> result;
  for (Segment& segment : partition(graph, claims.clusters)) {
    verify_if_asked(segment.graph, "partition");
    result.push_back({std::move(segment)});
    if (result.back().segment.on_device && !lower_segment(result.back(), claims, target)) return std::nullopt;
  }
  return result;
}

std::vector<Lowered> partition_and_lower(const Graph& graph, Claims& claims, const Target& target) {
  while (true) {
    if (auto lowered = try_lower(graph, claims, target)) return *std::move(lowered);
  }
}

// Takes the segment's graph, and leaves how it meets the whole.
Step build_step(Lowered& lowered, const Claims& claims, const Target& target) {
  Step step{lowered.segment.on_device, std::move(lowered.segment.graph)};
  step.scalars = lowered.segment.scalars;
  step.nodes = std::move(lowered.segment.nodes);
  step.origin = std::move(lowered.origin);
  if (!step.on_device) {
    for (const uint32_t node : step.nodes) step.reasons.push_back(claims.reason(node));
    return step;
  }
  step.symbols = std::move(lowered.symbols);
  step.reused = lowered.reused;
  step.executable = lowered.code.executable;
  if (lowered.symbolic_graph)
    target.symbolic->insert(*std::move(lowered.symbolic_graph), target.precision, std::move(lowered.code));
  return step;
}

// Gives every buffer param and every output of a step a slot, and the steps theirs.
class SlotPlan {
 public:
  explicit SlotPlan(Program& program) : program_(program), slot_of_(program.graph.types.size(), kNone) {
    for (const Param& param : program.graph.params) {
      if (param.scalar) {
        ++program.scalar_count;
      } else {
        add(param.value);
        ++program.input_count;
      }
    }
  }

  void connect(Step& step, const Segment& segment) {
    for (const ValueId input : segment.inputs) step.inputs.push_back(slot_of_[input]);
    for (const ValueId output : segment.outputs) step.outputs.push_back(add(output));
  }

  void finish() {
    for (const ValueId output : program_.graph.outputs) program_.outputs.push_back(slot_of_[output]);
    add_releases();
  }

 private:
  uint32_t add(ValueId value) {
    program_.slots.push_back(program_.graph.types[value]);
    return slot_of_[value] = static_cast<uint32_t>(program_.slots.size() - 1);
  }

  // A slot that no step reads is released after the first one.
  void add_releases() {
    if (program_.steps.empty()) return;
    std::vector<size_t> last(program_.slots.size(), 0);
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      for (const uint32_t slot : program_.steps[i].inputs) last[slot] = i;
    }
    std::vector<bool> kept(program_.slots.size(), false);
    for (const uint32_t slot : program_.outputs) kept[slot] = true;
    for (uint32_t slot = 0; slot < last.size(); ++slot) {
      if (!kept[slot]) program_.steps[last[slot]].released.push_back(slot);
    }
  }

  Program& program_;
  std::vector<uint32_t> slot_of_;  // by value of the program's graph
};

std::vector<GraphStage>* stages_of(Program& program, const Target& target) {
  return target.keeps_stages ? &program.stages : nullptr;
}

// A program without steps, whose graph has gone through the passes.
std::shared_ptr<Program> begin_program(Graph graph, const Target& target) {
  auto program = std::make_shared<Program>();
  program->generation = target.device.generation();
  program->graph = std::move(graph);
  if (target.keeps_stages) program->stages.push_back({"recorded", print(program->graph)});
  run_passes(program->graph, stages_of(*program, target));
  return program;
}

void assemble(Program& program, std::vector<Lowered> lowered, const Claims& claims, const Target& target) {
  SlotPlan slots(program);
  for (Lowered& part : lowered) {
    program.steps.push_back(build_step(part, claims, target));
    slots.connect(program.steps.back(), part.segment);
  }
  slots.finish();
}

std::string host_ops_text(const Program& program) {
  std::map<std::string, size_t> counts;
  for_each_host_node(program, [&](const Node& node, const std::string&) { ++counts[op_name(node.op)]; });
  std::string text;
  for (const auto& [op, count] : counts) text += cat(text.empty() ? "; on the host: " : ", ", count, " ", op);
  return text;
}

void report(const Program& program, const Target& target, Clock::time_point begin) {
  if (!log::enabled(log::Level::kInfo)) return;
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  log::info(program.is_quick ? "compiled with little effort " : "compiled ", program.graph.nodes.size(), " nodes into ",
            program.steps.size(), " segments in ", ms, " ms", host_ops_text(program));
  if (!log::enabled(log::Level::kDebug)) return;
  log::debug(print(program.graph), program_text(program, target));
}

// Where the plugin carries out the collectives itself, and their halves too.
void overlap_if_claimed(Program& program, Claims& claims, const Target& target) {
  const auto on_host = [](const Graph& graph, const Claims& asked) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      if (is_collective(graph.nodes[i].op) && asked.clusters[i] == 0) return true;
    }
    return false;
  };
  if (std::ranges::none_of(program.graph.nodes, is_collective, &Node::op) || on_host(program.graph, claims)) return;
  Graph trial = program.graph;
  if (!overlap_collectives(trial)) return;
  Claims asked = ask_claims(trial, target.device, target.demotion);
  if (on_host(trial, asked)) return;
  verify_if_asked(trial, "overlap");
  program.graph = std::move(trial);
  claims = std::move(asked);
  if (target.keeps_stages) program.stages.push_back({"overlap", print(program.graph)});
}

std::shared_ptr<const Program> compile_for(Graph graph, const Target& target) {
  const auto begin = Clock::now();
  host::PluginDevice& device = target.device;
  const TypeDemotion& demotion = target.demotion;
  const auto program = begin_program(std::move(graph), target);
  Claims claims = ask_claims(program->graph, device, demotion);
  const auto clusters_of = [&](const Graph& trial) { return ask_claims(trial, device, demotion).clusters; };
  const bool is_partial = std::ranges::find(claims.clusters, 0u) != claims.clusters.end();
  if (is_partial && device.can_compute() &&
      decompose::decompose(program->graph, clusters_of, not_demotable(program->graph, demotion))) {
    if (target.keeps_stages) program->stages.push_back({"decompose", print(program->graph)});
    run_passes(program->graph, stages_of(*program, target));
    claims = ask_claims(program->graph, device, demotion);
  }
  overlap_if_claimed(*program, claims, target);
  std::vector<Lowered> lowered = partition_and_lower(program->graph, claims, target);
  program->is_quick = target.effort < default_effort() &&
                      std::ranges::any_of(lowered, [](const Lowered& part) { return part.segment.on_device && !part.reused; });
  assemble(*program, std::move(lowered), claims, target);
  report(*program, target, begin);
  return program;
}

}  // namespace

std::shared_ptr<const Program> compile(Graph graph, const CompileTarget& target, Effort effort) {
  return compile_for(std::move(graph), {target, effort});
}

std::shared_ptr<const Program> reuse(Graph graph, const CompileTarget& target) {
  try {
    return target.symbolic ? compile_for(std::move(graph), {target, default_effort(), true}) : nullptr;
  } catch (const NotKnown&) {
    return nullptr;
  }
}

std::shared_ptr<const Program> interim_program(Graph graph, const CompileTarget& compile_target) {
  const Target target{compile_target, default_effort()};
  const auto program = begin_program(std::move(graph), target);
  program->is_interim = true;
  const size_t count = program->graph.nodes.size();
  Claims claims{std::vector<uint32_t>(count, 0), std::vector<std::string>(count, "its program is being compiled")};
  assemble(*program, partition_and_lower(program->graph, claims, target), claims, target);
  return program;
}

std::string program_text(const Program& program, const CompileTarget& target) {
  std::string text;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    std::optional<std::string> own;
    if (step.on_device) {
      const auto lowered = lower(demote(step.graph, target.demotion).graph(), target);
      own = target.device.program_text(lowered.get());
    }
    text += cat("step ", i, step.on_device ? " on the device\n" : " on the host\n", own ? *own : print(step.graph));
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

}  // namespace ltc
