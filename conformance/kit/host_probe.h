// The host that the suite offers to a plugin: the core's own status objects, and a memory of how it was called.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::conformance {

// The data that hosts of several processes keep for a plugin.
class HostCache {
 public:
  bool find(const std::string& key, std::string& value) const;
  void insert(const std::string& key, const std::string& value);
  size_t size() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

class HostProbe {
 public:
  // `cache` may be null: nothing is kept.
  explicit HostProbe(HostCache* cache = nullptr);
  HostProbe(const HostProbe&) = delete;
  HostProbe& operator=(const HostProbe&) = delete;

  const ltc_host_api* table() const { return &table_; }

  // From now on every call is a breach: plugin_close has returned.
  void close() { closed_ = true; }

  std::vector<std::string> breaches() const;  // of the contract of ltc_host_api
  std::vector<std::string> errors() const;    // lines logged as errors

 private:
  static HostProbe& of(void* host);
  void breach(const std::string& what) const;
  void expect_text(const char* what, const ltc_string& string) const;
  static ltc_status* status_create(void* host, ltc_code code, uint32_t node, const char* message, size_t size) noexcept;
  static void log(void* host, int32_t level, const char* message, size_t size) noexcept;
  static bool log_enabled(void* host, int32_t level) noexcept;
  static bool cache_find(void* host, const ltc_string* key, const ltc_sink* value) noexcept;
  static void cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) noexcept;
  static bool is_awaited(void* host) noexcept;

  HostCache* cache_;
  ltc_host_api table_;
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> asked_{0};  // is_awaited
  mutable std::mutex mutex_;
  mutable std::vector<std::string> breaches_;
  std::vector<std::string> errors_;
};

}  // namespace ltc::conformance
