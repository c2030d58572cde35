#include "core/host/host_api.h"

#include <string_view>

#include "core/base/log.h"
#include "core/host/sized.h"
#include "core/host/status.h"

namespace ltc::host {
namespace {

log::Level level_of(int32_t level) {
  const bool known = level >= LTC_LOG_TRACE && level <= LTC_LOG_ERROR;
  return known ? static_cast<log::Level>(level) : log::Level::kError;
}

ltc_code status_code(const ltc_status* status) noexcept { return status ? status->code : 0; }
bool log_enabled(void*, int32_t level) noexcept { return log::enabled(level_of(level)); }

}  // namespace

HostApi::HostApi(std::string plugin_name) : prefix_("[" + plugin_name + "] "), table_(sized<ltc_host_api>()) {
  table_.host = this;
  table_.status_create = create_status;
  table_.status_code = status_code;
  table_.status_destroy = status_destroy;
  table_.log = log;
  table_.log_enabled = host::log_enabled;
}

ltc_status* HostApi::create_status(void*, ltc_code code, uint32_t node, const char* message, size_t size) noexcept {
  return status_create(code, node, message, size);
}

void HostApi::log(void* host, int32_t level, const char* message, size_t size) noexcept {
  try {
    if (message) log::at(level_of(level), of(host)->prefix_, std::string_view(message, size));
  } catch (...) {
    // No memory for a line of log: the line is lost, the plugin's work goes on.
  }
}

}  // namespace ltc::host
