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

HostValue allocate_host_value(TypeId type) {
  constexpr size_t kAlignment = 64;  // a cache line, and what vectorised kernels like
  const size_t size = (std::max<size_t>(type_of(type).size_bytes(), 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* data = std::aligned_alloc(kAlignment, size);
  if (!data) fail(Code::kResourceExhausted, "out of host memory for a value of ", type_of(type).size_bytes(), " bytes");
  return {type, std::shared_ptr<void>(data, std::free)};
}

}  // namespace ltc
