// The functions that the host offers to a plugin: the ltc_host_api of one plugin instance.
#pragma once

#include <atomic>
#include <string>

#include "core/base/disk_cache.h"
#include "ltc/plugin.h"

namespace ltc::host {

// No file that a plugin may keep is larger: the host takes no more bytes, and keeps nothing of it.
inline constexpr size_t kLargestKept = 256 << 20;

// Kept at one address from ltc_plugin_entry until plugin_close has returned. Its functions may be called from any thread.
class HostApi {
 public:
  // `cache` may be null: nothing is kept.
  explicit HostApi(std::string plugin_name, DiskCache* cache = DiskCache::instance());
  HostApi(const HostApi&) = delete;
  HostApi& operator=(const HostApi&) = delete;

  const ltc_host_api* table() const { return &table_; }

  // Whether this host chains extensions of the kind, for a plugin that lists it.
  static bool sends(uint32_t kind);

  // A thread of the program begins or ends to wait for the plugin.
  void begin_wait() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waiting_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::string prefix_;  // of log lines: "[opencl] "
  DiskCache* cache_;
  ltc_host_api table_;
  std::atomic<uint32_t> waiting_{0};

  std::string cache_key(const ltc_string* key) const;
  static HostApi* of(void* host) { return static_cast<HostApi*>(host); }
  static ltc_status* create_status(void* host, ltc_code code, uint32_t node, const char* message, size_t size) noexcept;
  static void log(void* host, int32_t level, const char* message, size_t size) noexcept;
  static bool cache_find(void* host, const ltc_string* key, const ltc_sink* value) noexcept;
  static void cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) noexcept;
  static bool is_awaited(void* host) noexcept;
};

}  // namespace ltc::host
