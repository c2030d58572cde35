#include "core/compile/build_program.h"

#include <algorithm>
#include <string>

#include "core/base/disk_cache.h"
#include "core/compile/cache/saved_program.h"
#include "core/compile/lowering/compiler.h"
#include "core/compile/lowering/prefetch.h"
#include "core/host/plugin.h"

namespace ltc {
namespace {

bool serves_many_sizes(const Program& program) {
  return std::ranges::any_of(program.steps, [](const Step& step) { return !step.symbols.empty(); });
}

CompiledProgram with_source(std::shared_ptr<const Program> program) {
  if (program->is_quick) return {std::move(program), CompiledProgram::kQuick};
  const auto is_new = [](const Step& step) { return step.on_device && !step.reused; };
  const bool any_new = std::ranges::any_of(program->steps, is_new);
  const bool any_reused = std::ranges::any_of(program->steps, &Step::reused);
  const auto is_symbolic = [&](const Step& step) { return is_new(step) && !step.symbols.empty(); };
  const CompiledProgram::Source source = !any_new && any_reused                             ? CompiledProgram::kReused
                                         : std::ranges::any_of(program->steps, is_symbolic) ? CompiledProgram::kCompiledSymbolic
                                                                                            : CompiledProgram::kCompiled;
  return {std::move(program), source};
}

// Null if it is not there, or damaged: then it is compiled again.
std::shared_ptr<const Program> load(DiskCache& disk, const std::string& key, const Graph& graph, const CompileTarget& target) {
  try {
    const auto saved = find_saved(disk, key, target);
    if (!saved) return nullptr;
    auto program = load_program(*saved, graph, target);
    program->saved_as = key;
    return program;
  } catch (const std::exception& error) {  // a plugin's error too
    disk.reject(key, error.what());
    return nullptr;
  }
}

void store(DiskCache& disk, const std::string& key, const Program& program, const Graph& graph, const CompileTarget& target) {
  if (serves_many_sizes(program)) return;
  disk.insert(key, cat(target.device.plugin().name(), ", ", graph.nodes.size(), " ops"),
              save_program(program, graph, target.device));
}

DiskCache* disk_for(const Graph& graph, Effort effort) {
  return effort >= default_effort() && !graph.nodes.empty() ? DiskCache::instance() : nullptr;
}

}  // namespace

std::shared_ptr<const Program> find_saved_program(const Graph& graph, const CompileTarget& target) {
  DiskCache* disk = disk_for(graph, default_effort());
  return disk ? load(*disk, program_key(graph, target), graph, target) : nullptr;
}

CompiledProgram build_program(Graph graph, const CompileTarget& target, Effort effort) {
  DiskCache* disk = disk_for(graph, effort);
  if (!disk) return with_source(compile(std::move(graph), target, effort));
  const std::string key = program_key(graph, target);
  if (auto program = load(*disk, key, graph, target)) return {std::move(program), CompiledProgram::kDisk};
  auto program = compile(graph, target, effort);
  store(*disk, key, *program, graph, target);
  return with_source(std::move(program));
}

}  // namespace ltc
