// The functions that the host offers to a plugin: the ltc_host_api of one plugin instance.
#pragma once

#include <atomic>
#include <string>

#include "core/base/disk_cache.h"
#include "ltc/plugin.h"

namespace ltc::host {

// No file that a plugin may keep is larger: the host takes no more bytes, and keeps nothing of it.
inline constexpr size_t kLargestKept = 256 << 20;

// Its functions may be called from any thread. That of a plugin stays until the process ends, since the plugin's library does
// too: a thread of the plugin that calls after plugin_close, which the contract forbids, is answered, and the log says so once.
class HostApi {
 public:
  // The one of all instances of the plugin, and one instance more of it. leave() when plugin_close has returned.
  static HostApi& enter(const std::string& plugin_name);
  void leave();

  // `cache` may be null: nothing is kept.
  explicit HostApi(std::string plugin_name, DiskCache* cache = DiskCache::instance());
  HostApi(const HostApi&) = delete;
  HostApi& operator=(const HostApi&) = delete;

  const ltc_host_api* table() const { return &table_; }
  const std::string& plugin_name() const { return plugin_name_; }

  // Whether this host reads extensions of the kind, and sends those that a host sends to a plugin that lists it.
  static bool knows(uint32_t kind);

  // A thread of the program begins or ends to wait for the plugin.
  void begin_wait() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waiting_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  const std::string plugin_name_, prefix_;  // "opencl"; of log lines: "[opencl] "
  DiskCache* cache_;
  ltc_host_api table_;
  std::atomic<uint32_t> waiting_{0};
  uint32_t instances_ = 0;           // guarded by one lock for all plugins
  std::atomic<bool> closed_{false};  // as nobody is left: only a call that comes too late finds it so

  std::string cache_key(const ltc_string* key) const;
  static HostApi* of(void* host);
  static ltc_status* create_status(void* host, ltc_code code, uint32_t node, const char* message, size_t size) noexcept;
  static void log(void* host, int32_t level, const char* message, size_t size) noexcept;
  static bool cache_find(void* host, const ltc_string* key, const ltc_sink* value) noexcept;
  static void cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) noexcept;
  static bool is_awaited(void* host) noexcept;
};

}  // namespace ltc::host
