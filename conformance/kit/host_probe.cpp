#include "conformance/kit/host_probe.h"

#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/host/sized.h"
#include "core/host/status.h"

namespace ltc::conformance {
namespace {

// Where a call with a foreign host pointer ends up: its breach belongs to somebody.
std::atomic<HostProbe*> newest{nullptr};

}  // namespace

bool HostCache::find(const std::string& key, std::string& value) const {
  const std::lock_guard lock(mutex_);
  const auto it = values_.find(key);
  if (it == values_.end()) return false;
  value = it->second;
  return true;
}

void HostCache::insert(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
}

size_t HostCache::size() const {
  const std::lock_guard lock(mutex_);
  return values_.size();
}

void HostCache::clear() {
  const std::lock_guard lock(mutex_);
  values_.clear();
}

HostProbe::HostProbe(HostCache* cache) : cache_(cache), table_(host::sized<ltc_host_api>()) {
  newest = this;
  table_.host = this;
  table_.status_create = status_create;
  table_.status_code = [](const ltc_status* status) noexcept -> ltc_code { return status ? status->code : 0; };
  table_.status_destroy = host::status_destroy;
  table_.log = log;
  table_.log_enabled = log_enabled;
  table_.cache_find = cache_find;
  table_.cache_insert = cache_insert;
  table_.is_awaited = is_awaited;
}

HostProbe& HostProbe::of(void* host) {
  HostProbe* last = newest;
  // Only instances of this class are ever handed out; anything else must not be touched.
  if (host == nullptr) {
    last->breach("ltc_host_api was called with a null host, not with ltc_host_api::host");
    return *last;
  }
  return *static_cast<HostProbe*>(host);
}

void HostProbe::breach(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  breaches_.push_back(what);
}

void HostProbe::expect_text(const char* what, const ltc_string& string) const {
  if (string.size == 0) return;
  const std::string text(string.data, string.size);
  if (text != valid_utf8(text)) breach(cat(what, " is not UTF-8"));
  if (string.data[string.size] != '\0') breach(cat(what, " has no NUL behind it"));
}

std::vector<std::string> HostProbe::breaches() const {
  const std::lock_guard lock(mutex_);
  return breaches_;
}

std::vector<std::string> HostProbe::errors() const {
  const std::lock_guard lock(mutex_);
  return errors_;
}

ltc_status* HostProbe::status_create(void* host, ltc_code code, uint32_t node, const char* message, size_t size) noexcept {
  const HostProbe& probe = of(host);
  if (probe.closed_) probe.breach("status_create was called after plugin_close had returned");
  if (code < LTC_INVALID_ARGUMENT || code > LTC_OUT_OF_RANGE)
    probe.breach(cat("status_create got the code ", code, ", which ABI 1.0 does not have"));
  if (!message || size == 0) probe.breach("status_create got no message: say what was wrong with which values");
  return host::status_create(code, node, message, size);
}

void HostProbe::log(void* host, int32_t level, const char* message, size_t size) noexcept {
  HostProbe& probe = of(host);
  if (probe.closed_) probe.breach("log was called after plugin_close had returned");
  if (!message) return probe.breach("log got no message");
  if (level < LTC_LOG_ERROR) return;
  const std::lock_guard lock(probe.mutex_);
  probe.errors_.emplace_back(message, size);
}

bool HostProbe::log_enabled(void* host, int32_t level) noexcept {
  const HostProbe& probe = of(host);
  if (probe.closed_) probe.breach("log_enabled was called after plugin_close had returned");
  return level >= LTC_LOG_WARN;
}

bool HostProbe::cache_find(void* host, const ltc_string* key, const ltc_sink* value) noexcept {
  const HostProbe& probe = of(host);
  if (probe.closed_) probe.breach("cache_find was called after plugin_close had returned");
  if (!key || key->size == 0 || !value || !value->write) {
    probe.breach("cache_find got no key or no sink");
    return false;
  }
  probe.expect_text("the key of cache_find", *key);
  std::string found;
  if (!probe.cache_ || !probe.cache_->find(std::string(key->data, key->size), found)) return false;
  (void)value->write(value->context, found.data(), found.size());
  return true;
}

void HostProbe::cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) noexcept {
  const HostProbe& probe = of(host);
  if (probe.closed_) probe.breach("cache_insert was called after plugin_close had returned");
  if (!key || key->size == 0 || !about || !value) return probe.breach("cache_insert got no key, no line about it or no value");
  probe.expect_text("the key of cache_insert", *key);
  probe.expect_text("the line about what cache_insert keeps", *about);
  if (probe.cache_) probe.cache_->insert(std::string(key->data, key->size), std::string(value->data, value->size));
}

// Every other time: results must not depend on it.
bool HostProbe::is_awaited(void* host) noexcept {
  HostProbe& probe = of(host);
  if (probe.closed_) probe.breach("is_awaited was called after plugin_close had returned");
  return probe.asked_.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
}

}  // namespace ltc::conformance
