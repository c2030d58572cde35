#include "core/host/status.h"

#include <atomic>

#include "core/base/utf8.h"

namespace ltc::host {
namespace {

std::atomic<size_t> live{0};

// What status_create hands out when there is no memory for a status; shared, never freed, not counted.
ltc_status& no_memory_status() {
  static auto* status = new ltc_status{LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of host memory, and none left to say for what"};
  return *status;
}

// Made while there is memory.
[[maybe_unused]] const ltc_status& made_early = no_memory_status();

}  // namespace

PluginError::PluginError(Code code, std::string_view plugin, std::string_view slot, std::string_view said)
    : Error(code, cat("[", plugin, "] ", slot, slot.empty() ? "" : ": ", said)), plugin_(plugin), said_(message_text(said)) {}

Code code_of(ltc_code code) {
  const bool known = code >= LTC_INVALID_ARGUMENT && code <= LTC_OUT_OF_RANGE;
  return known ? static_cast<Code>(code) : Code::kInternal;
}

void throw_status(std::string_view plugin, const char* slot, ltc_status* status) {
  struct Owned {
    ltc_status* status;
    ~Owned() { status_destroy(status); }
  } owned{status};
  const Code code = code_of(status->code);
  const std::string said = status->message.empty() ? code_name(code) : status->message;
  if (status->node == LTC_NONE) throw PluginError(code, plugin, slot, said);
  if (code == Code::kUnsupported) throw UnsupportedNode(plugin, slot, said, status->node);
  throw NodeError(code, plugin, slot, said, status->node);
}

size_t live_statuses() { return live.load(); }

ltc_status* status_create(ltc_code code, uint32_t node, const char* message, size_t size) noexcept {
  try {
    auto* status = new ltc_status{code, node, message ? message_text({message, size}) : std::string()};
    ++live;
    return status;
  } catch (...) {
    return &no_memory_status();
  }
}

void status_destroy(ltc_status* status) noexcept {
  if (!status || status == &no_memory_status()) return;
  --live;
  delete status;
}

}  // namespace ltc::host
