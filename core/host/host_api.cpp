#include "core/host/host_api.h"

#include <map>
#include <mutex>
#include <string_view>

#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/host/sized.h"
#include "core/host/status.h"
#include "ltc/collective.h"
#include "ltc/precision.h"
#include "ltc/profile.h"
#include "ltc/symbolic.h"

namespace ltc::host {
namespace {

log::Level level_of(int32_t level) {
  const bool known = level >= LTC_LOG_TRACE && level <= LTC_LOG_ERROR;
  return known ? static_cast<log::Level>(level) : log::Level::kError;
}

std::string_view view(const ltc_string* text) {
  return text && text->data ? std::string_view(text->data, text->size) : std::string_view();
}

// This host reads these, though plugins send the last only, and sends the others to who lists them.
constexpr ltc_extension kCollective{sizeof(ltc_extension), LTC_EXTENSION_COLLECTIVE, 1, nullptr};
constexpr ltc_extension kProfile{sizeof(ltc_extension), LTC_EXTENSION_PROFILE, 1, &kCollective};
constexpr ltc_extension kSymbolic{sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, &kProfile};
constexpr ltc_extension kExtensions{sizeof(ltc_extension), LTC_EXTENSION_PRECISION, 1, &kSymbolic};

std::mutex instances_lock;  // of all plugins

ltc_code status_code(const ltc_status* status) noexcept {
  if (!status) return 0;
  return status_exists(status) ? status->code : ltc_code{LTC_INTERNAL};
}
bool log_enabled(void*, int32_t level) noexcept { return log::enabled(level_of(level)); }

}  // namespace

HostApi::HostApi(std::string plugin_name, DiskCache* cache)
    : plugin_name_(std::move(plugin_name)), prefix_("[" + plugin_name_ + "] "), cache_(cache), table_(sized<ltc_host_api>()) {
  table_.ext = &kExtensions;
  table_.host = this;
  table_.status_create = create_status;
  table_.status_code = status_code;
  table_.status_destroy = status_destroy;
  table_.log = log;
  table_.log_enabled = host::log_enabled;
  table_.cache_find = cache_find;
  table_.cache_insert = cache_insert;
  table_.is_awaited = is_awaited;
}

HostApi& HostApi::enter(const std::string& plugin_name) {
  static auto* apis = new std::map<std::string, HostApi>();
  std::lock_guard lock(instances_lock);
  HostApi& api = apis->try_emplace(plugin_name, plugin_name).first->second;
  api.closed_ = false;
  ++api.instances_;
  return api;
}

void HostApi::leave() {
  std::lock_guard lock(instances_lock);
  if (--instances_ == 0) closed_ = true;
}

HostApi* HostApi::of(void* host) {
  auto* api = static_cast<HostApi*>(host);
  if (api->closed_.load(std::memory_order_relaxed) && api->closed_.exchange(false))
    log::error(api->prefix_, "the plugin calls the host after plugin_close has returned");
  return api;
}

bool HostApi::knows(uint32_t kind) {
  for (const ltc_extension* known = &kExtensions; known; known = known->next) {
    if (known->kind == kind) return true;
  }
  return false;
}

ltc_status* HostApi::create_status(void* host, ltc_code code, uint32_t node, const char* message, size_t size) noexcept {
  of(host);
  return status_create(code, node, message, size);
}

void HostApi::log(void* host, int32_t level, const char* message, size_t size) noexcept {
  try {
    if (message && log::enabled(level_of(level))) log::write(level_of(level), of(host)->prefix_ + message_text({message, size}));
  } catch (...) {
    // No memory for a line of log: the line is lost, the plugin's work goes on.
  }
}

std::string HostApi::cache_key(const ltc_string* key) const { return prefix_ + std::string(view(key)); }

bool HostApi::cache_find(void* host, const ltc_string* key, const ltc_sink* value) noexcept {
  try {
    DiskCache* const cache = of(host)->cache_;
    const auto found = cache ? cache->find(of(host)->cache_key(key)) : std::nullopt;
    return found && value && value->write(value->context, found->data(), found->size());
  } catch (...) {
    return false;
  }
}

void HostApi::cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) noexcept {
  try {
    DiskCache* const cache = of(host)->cache_;
    if (cache && value->size <= kLargestKept)
      cache->insert(of(host)->cache_key(key), of(host)->prefix_ + std::string(view(about)), view(value));
  } catch (...) {
    // No memory to keep it: it is made again.
  }
}

bool HostApi::is_awaited(void* host) noexcept { return of(host)->waiting_.load(std::memory_order_relaxed) > 0; }

}  // namespace ltc::host
