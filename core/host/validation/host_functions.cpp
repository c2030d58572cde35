// The functions of ltc_host_api that a plugin is given.
#include "core/host/validation/call.h"
#include "core/host/validation/slots.h"

namespace ltc::host::validation {
namespace {

// A call of a plugin into the host.
class HostCall {
 public:
  HostCall(const char* function, void* host) : function_(function) {
    instance_ = static_cast<Instance*>(Registry::instance().find(host, Kind::kInstance));
    require(instance_ != nullptr, "host_api.host", host);
    alive_ = instance_ && require(!instance_->closed, "host_api.not_after_close");
  }

  template <typename... Parts>
  bool require(bool holds, ClauseId clause, const Parts&... parts) {
    if (!holds) report(clause, instance_ ? instance_->name : "unknown plugin", function_, cat("", parts...));
    return holds;
  }
  bool text(const char* data, size_t size, ClauseId clause) {
    return require(data ? is_text({data, size}) : size == 0, clause, size, " bytes");
  }

  explicit operator bool() const { return alive_; }
  Instance* operator->() const { return instance_; }
  Instance* instance() const { return instance_; }

 private:
  const char* const function_;
  Instance* instance_ = nullptr;
  bool alive_ = false;
  InHost in_host_;
};

ltc_status* LTC_CALL status_create(void* host, ltc_code code, uint32_t node, const char* message, size_t size) {
  static std::atomic<Instance*> latest{nullptr};  // an error must be made also for a plugin that has no right to ask
  HostCall call("status_create", host);
  const bool is_known = (code >= LTC_INVALID_ARGUMENT && code <= LTC_OUT_OF_RANGE) || code >= kFirstOfVendors;
  call.require(is_known, "status_create.code", "code ", code);
  call.text(message, size, "status_create.message");
  if (call) latest = call.instance();
  Instance* const maker = call ? call.instance() : latest.load();
  if (!maker) return nullptr;
  ltc_status* const status = maker->host.status_create(maker->host.host, code, node, message, message ? size : 0);
  Statuses::instance().add(status, {maker, code, node});
  return status;
}

ltc_code LTC_CALL status_code(const ltc_status* status) {
  if (!status) return 0;
  const auto made = Statuses::instance().find(status);
  if (!made) report("status.owned", "unknown plugin", "status_code", "it is no status that a plugin holds");
  return made ? made->code : ltc_code{LTC_INTERNAL};
}

void LTC_CALL status_destroy(ltc_status* status) {
  if (!status) return;
  const auto made = Statuses::instance().take(status);
  if (!made) return report("status.owned", "unknown plugin", "status_destroy", "it is no status that a plugin holds");
  made->instance->host.status_destroy(status);
}

void LTC_CALL log(void* host, int32_t level, const char* message, size_t size) {
  HostCall call("log", host);
  call.require(level >= LTC_LOG_TRACE && level <= LTC_LOG_ERROR, "log.level", "level ", level);
  if (call.text(message, size, "log.message") && call) call->host.log(call->host.host, level, message, size);
}

bool LTC_CALL log_enabled(void* host, int32_t level) {
  HostCall call("log_enabled", host);
  call.require(level >= LTC_LOG_TRACE && level <= LTC_LOG_ERROR, "log.level", "level ", level);
  return call && call->host.log_enabled(call->host.host, level);
}

bool is_bytes(const ltc_string* bytes) { return bytes && (bytes->data || bytes->size == 0); }

bool LTC_CALL cache_find(void* host, const ltc_string* key, const ltc_sink* value) {
  HostCall call("cache_find", host);
  const bool has_key = call.require(is_bytes(key), "cache.strings", "key");
  const bool has_sink = call.require(value && value->write, "cache.sink");
  return has_key && has_sink && call && call->host.cache_find(call->host.host, key, value);
}

void LTC_CALL cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) {
  HostCall call("cache_insert", host);
  const bool is_good =
      is_bytes(key) && is_bytes(value) && is_bytes(about) && (!about->data || is_text({about->data, about->size}));
  if (call.require(is_good, "cache.strings") && call) call->host.cache_insert(call->host.host, key, about, value);
}

bool LTC_CALL is_awaited(void* host) {
  HostCall call("is_awaited", host);
  return call && call->host.is_awaited(call->host.host);
}

}  // namespace

void set_host_functions(Instance& instance) {
  ltc_host_api& table = instance.host_table;
  table.struct_size = LTC_SIZE_TO(ltc_host_api, is_awaited);
  table.ext = instance.host.ext;
  table.host = &instance;
  table.status_create = status_create;
  table.status_code = status_code;
  table.status_destroy = status_destroy;
  table.log = log;
  table.log_enabled = log_enabled;
  table.cache_find = cache_find;
  table.cache_insert = cache_insert;
  table.is_awaited = is_awaited;
}

}  // namespace ltc::host::validation
