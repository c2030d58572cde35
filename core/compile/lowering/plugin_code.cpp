#include "core/compile/lowering/plugin_code.h"

#include "core/compile/lowering/abi_graph.h"
#include "core/host/plugin.h"

namespace ltc {

namespace {

std::shared_ptr<ltc_executable> own(ltc_executable* executable, host::PluginDevice& device, uint32_t generation) {
  return {executable, [&device, generation](ltc_executable* gone) { device.destroy_executable(gone, generation); }};
}

}  // namespace

std::shared_ptr<ltc_program> lower(const Graph& graph, const CompileTarget& target, const ltc_symbolic_sizes* sizes) {
  host::PluginDevice& device = target.device;
  uint32_t generation = 0;
  ltc_program* const program = device.lower(*AbiGraph(graph).get(), target.precision, sizes, &generation);
  return {program, [&device, generation](ltc_program* gone) { device.destroy_program(gone, generation); }};
}

std::shared_ptr<ltc_executable> compile(const ltc_program& program, host::PluginDevice& device, Effort effort) {
  uint32_t generation = 0;
  ltc_executable* const executable = device.compile(&program, static_cast<uint32_t>(effort), &generation);
  return own(executable, device, generation);
}

bool save_executables(ByteWriter& out, const Executables& executables, host::PluginDevice& device) {
  bool all_saved = true;
  out.number<uint64_t>(executables.size());
  for (const auto& executable : executables) {
    const auto bytes = executable ? device.save_executable(executable.get()) : "";
    all_saved = all_saved && bytes;
    out.text(bytes.value_or(""));
  }
  return all_saved;
}

Executables load_executables(ByteReader& in, host::PluginDevice& device) {
  std::vector<std::string_view> saved(in.length(8));
  for (std::string_view& bytes : saved) bytes = in.text();
  Executables executables;
  for (const std::string_view bytes : saved) {
    uint32_t generation = 0;
    ltc_executable* const executable = bytes.empty() ? nullptr : device.load_executable(bytes.data(), bytes.size(), &generation);
    executables.push_back(executable ? own(executable, device, generation) : nullptr);
  }
  return executables;
}

}  // namespace ltc
