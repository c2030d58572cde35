#include "core/compile/cache/saved_program.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/compile/lowering/effort.h"
#include "core/compile/lowering/error_context.h"
#include "core/compile/lowering/plugin_code.h"
#include "core/compile/lowering/symbolic_programs.h"
#include "core/host/plugin.h"
#include "core/ir/binary.h"

namespace ltc {
namespace {

std::vector<LocationId> locations_of(const Graph& graph) {
  std::vector<LocationId> locations;
  for (const Node& node : graph.nodes) locations.push_back(node.location);
  return locations;
}

std::string graph_bytes(const Graph& graph, const std::vector<LocationId>& locations) {
  ByteWriter out;
  write_graph(out, graph, &locations);
  return out.take();
}

// `whole`: the graph of the program, as bytes. That of an only step is the same and is not repeated.
void write_step(ByteWriter& out, const Step& step, const std::string& whole, const std::vector<LocationId>& locations) {
  out.number<uint8_t>(step.on_device);
  const std::string graph = graph_bytes(step.graph, locations);
  out.text(graph == whole ? "" : graph);
  for (const auto* list : {&step.inputs, &step.scalars, &step.outputs, &step.released, &step.nodes, &step.origin})
    out.numbers(*list);
  out.number<uint64_t>(step.reasons.size());
  for (const std::string& reason : step.reasons) out.text(reason);
}

Step read_step(ByteReader& in, const Graph& whole, const std::vector<LocationId>& locations) {
  const auto on_device = in.number<uint8_t>();
  if (on_device > 1) fail(Code::kDataCorrupt, "saved bytes are damaged: a step");
  const std::string_view graph = in.text();
  ByteReader bytes(graph);
  Step step{on_device != 0, graph.empty() ? whole : read_graph(bytes, &locations)};
  if (!bytes.at_end()) fail(Code::kDataCorrupt, "saved bytes are damaged: the graph of a step");
  for (auto* list : {&step.inputs, &step.scalars, &step.outputs, &step.released, &step.nodes, &step.origin})
    *list = in.numbers<uint32_t>();
  step.reasons.resize(in.length(8));
  for (std::string& reason : step.reasons) reason = in.text();
  return step;
}

// The plugin's code of a step, where it was not loaded, and where programs of other sizes find it.
void finish_step(const std::shared_ptr<Program>& program, size_t index, const CompileTarget& target) {
  Step& step = program->steps[index];
  const auto demoted = [program, index, demotion = target.demotion] {
    return demote(program->steps[index].graph, demotion).graph();
  };
  if (!step.executable) step.executable = compile(*lower(demoted(), target), target.device, default_effort());
  if (!target.symbolic) return;
  const auto example = [demoted] { return SymbolicGraph(GraphSkeleton(demoted())); };
  target.symbolic->insert_later(example, target.precision, {nullptr, step.executable});
}

// Checks all that running relies on, in the order in which a run goes through the steps.
class Checker {
 public:
  Checker(const Program& program, const Graph& recorded) : program_(program), recorded_(recorded) {}

  void run() {
    check_ends();
    filled_.assign(program_.slots.size(), false);
    std::fill_n(filled_.begin(), program_.input_count, true);
    next_slot_ = program_.input_count;
    for (const Step& step : program_.steps) check_step(step);
    check(next_slot_ == program_.slots.size(), "a slot that nothing fills");
    for (const uint32_t slot : program_.outputs) check(filled_[slot], "an output that is released");
  }

 private:
  void check(bool condition, const char* what) const {
    if (!condition) fail(Code::kDataCorrupt, "saved bytes are damaged: the steps do not fit together: ", what);
  }

  // The program takes what was recorded and gives what was asked for.
  void check_ends() {
    const Graph& graph = program_.graph;
    check(graph.params.size() == recorded_.params.size(), "the number of params");
    for (size_t i = 0; i < graph.params.size(); ++i) {
      const Param& param = graph.params[i];
      const TypeId type = graph.types[param.value];
      check(param.scalar == recorded_.params[i].scalar && type == recorded_.types[recorded_.params[i].value], "a param");
      if (param.scalar) {
        scalars_.push_back(type);
      } else {
        check(inputs_ < program_.slots.size() && program_.slots[inputs_] == type, "the slot of a param");
        ++inputs_;
      }
    }
    check(program_.input_count == inputs_ && program_.scalar_count == scalars_.size(), "the number of inputs");
    check(graph.outputs.size() == recorded_.outputs.size() && program_.outputs.size() == graph.outputs.size(),
          "the number of outputs");
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const uint32_t slot = program_.outputs[i];
      check(slot >= inputs_ && slot < program_.slots.size() && program_.slots[slot] == graph.types[graph.outputs[i]],
            "the slot of an output");
      check(same_shape(graph.type(graph.outputs[i]), recorded_.type(recorded_.outputs[i])), "the type of an output");
      check(std::ranges::count(program_.outputs, slot) == 1, "two outputs of one slot");
    }
  }

  void check_step(const Step& step) {
    const auto read = [&](uint32_t slot) { return slot < filled_.size() && filled_[slot]; };
    size_t input = 0, scalar = 0;
    for (const Param& param : step.graph.params) {
      const TypeId type = step.graph.types[param.value];
      if (param.scalar) {
        check(scalar < step.scalars.size() && step.scalars[scalar] < scalars_.size() && scalars_[step.scalars[scalar]] == type,
              "a number that a step reads");
        ++scalar;
      } else {
        check(input < step.inputs.size() && read(step.inputs[input]) && program_.slots[step.inputs[input]] == type,
              "a slot that a step reads");
        ++input;
      }
    }
    check(input == step.inputs.size() && scalar == step.scalars.size(), "what a step reads");
    check(step.outputs.size() == step.graph.outputs.size(), "what a step makes");
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const uint32_t slot = step.outputs[i];
      check(slot == next_slot_ && slot < filled_.size() && program_.slots[slot] == step.graph.types[step.graph.outputs[i]],
            "a slot that a step fills");
      filled_[next_slot_++] = true;
    }
    for (const uint32_t slot : step.released) {
      check(read(slot), "a slot that is released");
      filled_[slot] = false;
    }
    const size_t nodes = step.graph.nodes.size();
    check(std::ranges::all_of(step.origin, [nodes](uint32_t node) { return node < nodes; }), "the origin of a node");
    const size_t all = program_.graph.nodes.size();
    check(step.nodes.size() == nodes && std::ranges::all_of(step.nodes, [all](uint32_t node) { return node < all; }),
          "the nodes of a step");
    check(step.on_device || !step.executable, "the executable of a host step");
    check(step.reasons.size() == (step.on_device ? 0 : nodes), "the reasons of a step");
  }

  const Program& program_;
  const Graph& recorded_;
  size_t inputs_ = 0, next_slot_ = 0;
  std::vector<TypeId> scalars_;
  std::vector<bool> filled_;
};

}  // namespace

std::string program_key(const Graph& graph, const CompileTarget& target) {
  ByteWriter out;
  write_graph(out, graph);
  return target_key(target) + out.take();
}

std::string save_program(const Program& program, const Graph& graph, host::PluginDevice& device) {
  const std::vector<LocationId> locations = locations_of(graph);
  ByteWriter out;
  Executables executables;
  for (const Step& step : program.steps) executables.push_back(step.executable);
  save_executables(out, executables, device);
  const std::string whole = graph_bytes(program.graph, locations);
  out.text(whole);
  out.number<uint64_t>(program.slots.size());
  for (const TypeId slot : program.slots) write_type(out, slot);
  out.number<uint64_t>(program.input_count);
  out.number<uint64_t>(program.scalar_count);
  out.numbers(program.outputs);
  out.number<uint64_t>(program.steps.size());
  for (const Step& step : program.steps) write_step(out, step, whole, locations);
  return out.take();
}

std::shared_ptr<Program> load_program(const SavedValue& saved, const Graph& graph, const CompileTarget& target) {
  const std::vector<LocationId> locations = locations_of(graph);
  ByteReader in(saved.rest());
  auto program = std::make_shared<Program>();
  program->generation = saved.generation;
  ByteReader whole(in.text());
  program->graph = read_graph(whole, &locations);
  program->slots.resize(in.length(20));
  for (TypeId& slot : program->slots) slot = read_type(in);
  program->input_count = in.number<uint64_t>();
  program->scalar_count = in.number<uint64_t>();
  program->outputs = in.numbers<uint32_t>();
  if (in.length(1) != saved.executables.size()) fail(Code::kDataCorrupt, "saved bytes are damaged: an executable for each step");
  for (const auto& executable : saved.executables) {
    program->steps.push_back(read_step(in, program->graph, locations));
    program->steps.back().executable = executable;
  }
  if (!whole.at_end() || !in.at_end()) fail(Code::kDataCorrupt, "saved bytes are damaged: more than a program");
  Checker(*program, graph).run();
  for (size_t i = 0; i < program->steps.size(); ++i) {
    if (program->steps[i].on_device) finish_step(program, i, target);
  }
  return program;
}

}  // namespace ltc
