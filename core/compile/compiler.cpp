#include "core/compile/compiler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "core/base/log.h"
#include "core/compile/abi_graph.h"
#include "core/compile/blame.h"
#include "core/compile/claims.h"
#include "core/compile/partition.h"
#include "core/compile/passes.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint32_t kEffort = 1;

// A segment with the plugin's form of it.
struct Lowered {
  Segment segment;
  std::shared_ptr<ltc_program> program;  // null on the host
  std::vector<uint32_t> origin;          // by node of the graph that the plugin was given, the node of the segment
};

// Null if the plugin refuses a node, whose claim is then withdrawn.
std::shared_ptr<ltc_program> lower(const Segment& segment, const NarrowedGraph& narrowed, Claims& claims,
                                   host::PluginDevice& device, uint32_t precision) {
  ltc_program* program = blaming(narrowed.graph, {}, [&]() -> ltc_program* {
    try {
      return device.lower(*AbiGraph(narrowed.graph).get(), precision);
    } catch (const host::UnsupportedNode& refusal) {
      if (refusal.node() >= narrowed.origin.size()) throw;
      log::info("claimed, but not lowered: ", blame_text(refusal, narrowed.graph));
      withdraw(claims, segment.nodes[narrowed.origin[refusal.node()]], cat("claimed, but not lowered: ", refusal.what()));
      return nullptr;
    }
  });
  if (!program) return nullptr;
  return {program, [&device](ltc_program* gone) { device.destroy_program(gone); }};
}

// None if the plugin refused a node.
std::optional<std::vector<Lowered>> try_lower(const Graph& graph, Claims& claims, host::PluginDevice& device,
                                              const Narrowing& narrowing, uint32_t precision) {
  std::vector<Lowered> result;
  for (Segment& segment : partition(graph, claims.clusters)) {
    std::shared_ptr<ltc_program> program;
    NarrowedGraph narrowed;
    if (segment.on_device) {
      narrowed = narrow(segment.graph, narrowing);
      program = lower(segment, narrowed, claims, device, precision);
      if (!program) return std::nullopt;
    }
    result.push_back({std::move(segment), std::move(program), std::move(narrowed.origin)});
  }
  return result;
}

std::vector<Lowered> partition_and_lower(const Graph& graph, Claims& claims, host::PluginDevice& device,
                                         const Narrowing& narrowing, uint32_t precision) {
  while (true) {
    if (auto lowered = try_lower(graph, claims, device, narrowing, precision)) return *std::move(lowered);
  }
}

std::string text_of(const Lowered& lowered, host::PluginDevice& device) {
  if (lowered.program) {
    if (auto text = device.program_text(lowered.program.get())) return *std::move(text);
  }
  return print(lowered.segment.graph);
}

std::string text_of(const std::vector<Lowered>& lowered, host::PluginDevice& device) {
  std::string text;
  for (size_t i = 0; i < lowered.size(); ++i) {
    text += cat("step ", i, lowered[i].program ? " on the device\n" : " on the host\n", text_of(lowered[i], device));
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

// Takes the segment's graph, and leaves how it meets the whole.
Step build_step(Lowered& lowered, const Claims& claims, host::PluginDevice& device) {
  Step step{lowered.segment.on_device, std::move(lowered.segment.graph)};
  step.scalars = lowered.segment.scalars;
  step.origin = std::move(lowered.origin);
  if (lowered.program) {
    step.executable = {blaming(step, [&] { return device.compile(lowered.program.get(), kEffort); }),
                       [&device](ltc_executable* gone) { device.destroy_executable(gone); }};
  } else {
    for (const uint32_t node : lowered.segment.nodes) step.reasons.push_back(claims.reasons[node]);
  }
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

  // What no step reads goes after the first one.
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

void assemble(Program& program, std::vector<Lowered> lowered, const Claims& claims, host::PluginDevice& device) {
  SlotPlan slots(program);
  for (Lowered& part : lowered) {
    program.steps.push_back(build_step(part, claims, device));
    slots.connect(program.steps.back(), part.segment);
  }
  slots.finish();
}

std::string host_ops_text(const Program& program) {
  std::map<std::string, size_t> counts;
  for (const Step& step : program.steps) {
    if (step.on_device) continue;
    for (const Node& node : step.graph.nodes) ++counts[op_name(node.op)];
  }
  std::string text;
  for (const auto& [op, count] : counts) text += cat(text.empty() ? "; on the host: " : ", ", count, " ", op);
  return text;
}

void report(const Program& program, Clock::time_point begin) {
  if (!log::enabled(log::Level::kInfo)) return;
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  log::info("compiled ", program.graph.nodes.size(), " nodes into ", program.steps.size(), " segments in ", ms, " ms",
            host_ops_text(program));
  if (log::enabled(log::Level::kDebug)) log::debug(print(program.graph), program.text);
}

}  // namespace

std::shared_ptr<const Program> compile(Graph graph, host::PluginDevice& device, const Narrowing& narrowing, uint32_t precision) {
  const auto begin = Clock::now();
  auto program = std::make_shared<Program>();
  program->graph = std::move(graph);
  run_passes(program->graph);
  Claims claims = ask_claims(program->graph, device, narrowing);
  const auto clusters_of = [&](const Graph& trial) { return ask_claims(trial, device, narrowing).clusters; };
  const bool is_partial = std::ranges::find(claims.clusters, 0u) != claims.clusters.end();
  if (is_partial && device.can_compute() &&
      decompose::decompose(program->graph, clusters_of, must_stay_wide(program->graph, narrowing))) {
    run_passes(program->graph);
    claims = ask_claims(program->graph, device, narrowing);
  }
  std::vector<Lowered> lowered = partition_and_lower(program->graph, claims, device, narrowing, precision);
  program->text = text_of(lowered, device);
  assemble(*program, std::move(lowered), claims, device);
  report(*program, begin);
  return program;
}

}  // namespace ltc
