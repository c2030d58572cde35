#include "core/run/host_ops.h"

#include <cstdlib>

namespace ltc {
namespace {
HostRunner g_runner = nullptr;
}

void set_host_runner(HostRunner runner) { g_runner = runner; }

HostRunner host_runner() {
  if (!g_runner) fail(Code::kUnsupported, "an op that the plugin does not claim needs the host, and no host runner is installed");
  return g_runner;
}

// Aligned here: the system's aligned memory costs several times its plain one.
HostValue allocate_host_value(TypeId type) {
  constexpr size_t kAlignment = 64;  // a cache line, and what vectorised kernels like
  const size_t size = type_of(type).size_bytes();
  const std::shared_ptr<void> memory(std::malloc(size + kAlignment), std::free);
  if (!memory) fail(Code::kResourceExhausted, "out of host memory for a value of ", size, " bytes");
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  return {type, {memory, reinterpret_cast<void*>(address / kAlignment * kAlignment + kAlignment)}};
}

}  // namespace ltc
