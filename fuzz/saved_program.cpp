// The reader of compiled programs, with a plugin that saves no executables: its steps are lowered again.
#include "core/compile/cache/saved_program.h"

#include "core/compile/lowering/compiler.h"
#include "core/testing/test_plugins.h"
#include "fuzz/graphs.h"

namespace ltc::fuzz {
namespace {

const Graph& recorded() {
  static const Graph graph = parse(kGraphs[0]);
  return graph;
}

host::PluginDevice& device() {
  static auto* opened = ltc::testing::load_plugin("test")->open_device(0).release();
  return *opened;
}

std::shared_ptr<Program> load(std::string_view bytes) {
  return load_program(SavedValue(std::string(bytes), device()), recorded(), device());
}

}  // namespace

bool accept(std::string_view input) {
  std::shared_ptr<Program> program;
  try {
    program = load(input);
  } catch (const Error&) {
    return false;
  }
  use(program->graph);
  for (const Step& step : program->steps) use(step.graph);
  const std::string bytes = save_program(*program, recorded(), device());
  const auto again = load(bytes);
  require(save_program(*again, recorded(), device()) == bytes, "a program that is saved, loaded and saved has the same bytes");
  return true;
}

std::vector<std::string> sound_inputs() { return {save_program(*compile(recorded(), device()), recorded(), device())}; }

}  // namespace ltc::fuzz
