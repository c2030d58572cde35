#include "core/compile/lowering/precision.h"

#include <atomic>

#include "core/host/plugin.h"
#include "ltc/precision.h"

namespace ltc {
namespace {

std::atomic<ReadPrecision> installed{nullptr};

}  // namespace

void set_read_precision(ReadPrecision read) { installed = read; }

uint32_t precision_for(const host::PluginDevice& device) {
  if (!device.plugin().understands(LTC_EXTENSION_PRECISION)) [[likely]]
    return 0;
  const ReadPrecision read = installed;
  return read ? read() : 0;
}

}  // namespace ltc
