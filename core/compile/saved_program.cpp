#include "core/compile/saved_program.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/compile/abi_graph.h"
#include "core/compile/blame.h"
#include "core/compile/compiler.h"
#include "core/compile/disk_cache.h"
#include "core/host/plugin.h"
#include "core/ir/binary.h"

namespace ltc {
namespace {

constexpr uint32_t kEffort = 1;

// Tells a library from another build of it that has the same version.
std::string stamp_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? "" : cat(size, '@', time.time_since_epoch().count());
}

std::string core_stamp() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&core_stamp), &info) && info.dli_fname ? stamp_of(info.dli_fname) : "";
}

std::vector<LocationId> places_of(const Graph& graph) {
  std::vector<LocationId> places;
  for (const Node& node : graph.nodes) places.push_back(node.location);
  return places;
}

void write_step(ByteWriter& out, const Step& step, const std::vector<LocationId>& places, host::PluginDevice& device) {
  out.number<uint8_t>(step.on_device);
  write_graph(out, step.graph, &places);
  for (const auto* list : {&step.inputs, &step.scalars, &step.outputs, &step.released, &step.origin}) out.numbers(*list);
  out.number<uint64_t>(step.reasons.size());
  for (const std::string& reason : step.reasons) out.text(reason);
  out.text(step.executable ? device.save_executable(step.executable.get()).value_or("") : "");
}

std::shared_ptr<ltc_executable> own(ltc_executable* executable, host::PluginDevice& device) {
  return {executable, [&device](ltc_executable* gone) { device.destroy_executable(gone); }};
}

std::shared_ptr<ltc_executable> lower_again(const Step& step, host::PluginDevice& device, const Narrowing& narrowing,
                                            uint32_t precision) {
  const NarrowedGraph narrowed = narrow(step.graph, narrowing);
  const std::shared_ptr<ltc_program> lowered(device.lower(*AbiGraph(narrowed.graph).get(), precision),
                                             [&device](ltc_program* gone) { device.destroy_program(gone); });
  return own(device.compile(lowered.get(), kEffort), device);
}

Step read_step(ByteReader& in, const std::vector<LocationId>& places, host::PluginDevice& device, const Narrowing& narrowing,
               uint32_t precision, SymbolicPrograms* symbolic) {
  Step step{in.number<uint8_t>() != 0, read_graph(in, &places)};
  for (auto* list : {&step.inputs, &step.scalars, &step.outputs, &step.released, &step.origin}) *list = in.numbers<uint32_t>();
  step.reasons.resize(in.length(8));
  for (std::string& reason : step.reasons) reason = in.text();
  const std::string_view saved = in.text();
  if (!step.on_device) return step;
  if (!saved.empty()) {
    if (ltc_executable* loaded = device.load_executable(saved.data(), saved.size())) step.executable = own(loaded, device);
  }
  if (!step.executable) step.executable = lower_again(step, device, narrowing, precision);
  if (symbolic)
    symbolic->insert(SymbolicGraph(Anatomy(narrow(step.graph, narrowing).graph)), precision, {nullptr, step.executable});
  return step;
}

// What running relies on: indices in range, as many slots, scalars and reasons as the steps' graphs have.
void check(const Program& program) {
  const auto below = [](const std::vector<uint32_t>& list, size_t bound) {
    return std::ranges::all_of(list, [bound](uint32_t index) { return index < bound; });
  };
  bool sound = program.input_count <= program.slots.size() && below(program.outputs, program.slots.size()) &&
               program.outputs.size() == program.graph.outputs.size();
  for (const Step& step : program.steps) {
    const auto scalars = static_cast<size_t>(std::ranges::count_if(step.graph.params, &Param::scalar));
    sound = sound && below(step.inputs, program.slots.size()) && below(step.outputs, program.slots.size()) &&
            below(step.released, program.slots.size()) && below(step.scalars, program.scalar_count) &&
            step.scalars.size() == scalars && step.inputs.size() + scalars == step.graph.params.size() &&
            step.outputs.size() == step.graph.outputs.size() && below(step.origin, step.graph.nodes.size()) &&
            step.reasons.size() == (step.on_device ? 0 : step.graph.nodes.size());
  }
  if (!sound) fail(Code::kDataCorrupt, "saved bytes are damaged: the steps do not fit together");
}

bool serves_many_sizes(const Program& program) {
  return std::ranges::any_of(program.steps, [](const Step& step) { return !step.symbols.empty(); });
}

CompiledProgram compiled(std::shared_ptr<const Program> program) {
  const auto is_new = [](const Step& step) { return step.on_device && !step.reused; };
  const bool any_new = std::ranges::any_of(program->steps, is_new);
  const bool any_reused = std::ranges::any_of(program->steps, &Step::reused);
  const auto is_general = [&](const Step& step) { return is_new(step) && !step.symbols.empty(); };
  const CompiledProgram::Source source = !any_new && any_reused                            ? CompiledProgram::kReused
                                         : std::ranges::any_of(program->steps, is_general) ? CompiledProgram::kCompiledForAll
                                                                                           : CompiledProgram::kCompiled;
  return {std::move(program), source};
}

}  // namespace

std::string program_key(const Graph& graph, host::PluginDevice& device, const Narrowing& narrowing, uint32_t precision) {
  static const std::string core = core_stamp();
  const host::Plugin& plugin = device.plugin();
  const host::PluginInfo info = plugin.describe();
  ByteWriter out;
  for (const std::string& part : {core, plugin.name(), info.version, info.build_id, stamp_of(plugin.path()),
                                  device.info().fingerprint, env::get(env::kClaims)})
    out.text(part);
  for (uint32_t dtype = 1; dtype < kDTypeCount; ++dtype) {
    out.number(static_cast<uint32_t>(narrowing.kept(static_cast<DType>(dtype))));
    out.number(static_cast<uint32_t>(narrowing.made(static_cast<DType>(dtype))));
  }
  out.number(precision);
  write_graph(out, graph);
  return out.take();
}

std::string save_program(const Program& program, const Graph& graph, host::PluginDevice& device) {
  const std::vector<LocationId> places = places_of(graph);
  ByteWriter out;
  write_graph(out, program.graph, &places);
  out.number<uint64_t>(program.slots.size());
  for (const TypeId slot : program.slots) write_type(out, slot);
  out.number<uint64_t>(program.input_count);
  out.number<uint64_t>(program.scalar_count);
  out.numbers(program.outputs);
  out.text(program.text);
  out.number<uint64_t>(program.steps.size());
  for (const Step& step : program.steps) write_step(out, step, places, device);
  return out.take();
}

std::shared_ptr<const Program> load_program(std::string_view bytes, const Graph& graph, host::PluginDevice& device,
                                            const Narrowing& narrowing, uint32_t precision, SymbolicPrograms* symbolic) {
  const std::vector<LocationId> places = places_of(graph);
  ByteReader in(bytes);
  auto program = std::make_shared<Program>();
  program->graph = read_graph(in, &places);
  program->slots.resize(in.length(20));
  for (TypeId& slot : program->slots) slot = read_type(in);
  program->input_count = in.number<uint64_t>();
  program->scalar_count = in.number<uint64_t>();
  program->outputs = in.numbers<uint32_t>();
  program->text = in.text();
  const size_t steps = in.length(1);
  for (size_t i = 0; i < steps; ++i) program->steps.push_back(read_step(in, places, device, narrowing, precision, symbolic));
  check(*program);
  return program;
}

CompiledProgram load_or_compile(Graph graph, host::PluginDevice& device, const Narrowing& narrowing, uint32_t precision,
                                SymbolicPrograms* symbolic) {
  DiskCache* disk = DiskCache::instance();
  if (!disk || graph.nodes.empty()) return compiled(compile(std::move(graph), device, narrowing, precision, symbolic));
  const std::string key = program_key(graph, device, narrowing, precision);
  if (const auto saved = disk->find(key)) {
    try {
      return {load_program(*saved, graph, device, narrowing, precision, symbolic), CompiledProgram::kDisk};
    } catch (const Error& error) {
      disk->reject(key, error.what());
    }
  }
  auto program = compile(graph, device, narrowing, precision, symbolic);
  if (!serves_many_sizes(*program))
    disk->insert(key, cat(device.plugin().name(), ", ", graph.nodes.size(), " ops"), save_program(*program, graph, device));
  return compiled(std::move(program));
}

}  // namespace ltc
