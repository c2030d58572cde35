#include "core/compile/lowering/plugin_code.h"

#include "core/compile/lowering/abi_graph.h"
#include "core/host/plugin.h"

namespace ltc {

std::shared_ptr<ltc_program> lower(const Graph& graph, const CompileTarget& target, const ltc_symbolic_sizes* sizes) {
  host::PluginDevice& device = target.device;
  const uint32_t generation = device.generation();
  return {device.lower(*AbiGraph(graph).get(), target.precision, sizes),
          [&device, generation](ltc_program* gone) { device.destroy_program(gone, generation); }};
}

std::shared_ptr<ltc_executable> compile(const ltc_program& program, host::PluginDevice& device, Effort effort) {
  return own(device.compile(&program, static_cast<uint32_t>(effort)), device);
}

std::shared_ptr<ltc_executable> own(ltc_executable* executable, host::PluginDevice& device) {
  const uint32_t generation = device.generation();
  return {executable, [&device, generation](ltc_executable* gone) { device.destroy_executable(gone, generation); }};
}

}  // namespace ltc
