// A host that keeps what a plugin tells it.
#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ltc/plugin.h"

struct ltc_status {
  ltc_code code;
  uint32_t node;
  std::string message;
};

namespace ltc::plugin {

struct FakeHost {
  ltc_host_api api{};
  std::vector<std::string> errors;  // logged
  std::map<std::string, std::string> cache;

  FakeHost() {
    api.struct_size = LTC_SIZE_TO(ltc_host_api, is_awaited);
    api.host = this;
    api.status_create = [](void*, ltc_code code, uint32_t node, const char* message, size_t size) {
      return new ltc_status{code, node, std::string(message, size)};
    };
    api.status_destroy = [](ltc_status* status) { delete status; };
    api.log = [](void* host, int32_t level, const char* message, size_t size) {
      FakeHost& self = *static_cast<FakeHost*>(host);
      const std::lock_guard lock(self.mutex_);
      if (level == LTC_LOG_ERROR) self.errors.emplace_back(message, size);
    };
    api.cache_find = [](void* host, const ltc_string* key, const ltc_sink* value) {
      const auto& cache = static_cast<FakeHost*>(host)->cache;
      const auto entry = cache.find(std::string(key->data, key->size));
      return entry != cache.end() && value->write(value->context, entry->second.data(), entry->second.size());
    };
    api.cache_insert = [](void* host, const ltc_string* key, const ltc_string*, const ltc_string* value) {
      static_cast<FakeHost*>(host)->cache[std::string(key->data, key->size)] = std::string(value->data, value->size);
    };
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

 private:
  std::mutex mutex_;
};

// Code 0 of a success. Ends the status.
inline ltc_status taken(ltc_status* status) {
  ltc_status copy{0, LTC_NONE, ""};
  if (status) copy = *status;
  delete status;
  return copy;
}

}  // namespace ltc::plugin
