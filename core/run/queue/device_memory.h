// A device, and how much of its memory the host holds: what buffers need of the queue that they came from.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/host/plugin.h"
#include "core/run/queue/memory_account.h"

namespace ltc {

struct Buffer;

class DeviceMemory {
 public:
  explicit DeviceMemory(std::unique_ptr<host::PluginDevice> device) : device_(std::move(device)) {}

  host::PluginDevice& device() { return *device_; }
  MemoryAccount& memory() { return memory_; }

  // The buffers that have memory of the device. A buffer enters the list with its handle and leaves it with that. Any thread.
  void add(Buffer& buffer, ltc_buffer* handle);
  ltc_buffer* remove(Buffer& buffer);  // its handle, the caller's now; null if it has none
  std::vector<ltc_buffer*> remove_all();
  // The kinds of values that take most of it: "3 x f32[4096,4096] 192 MB, ...".
  std::string largest_holders();

 protected:
  ~DeviceMemory() = default;

  const std::unique_ptr<host::PluginDevice> device_;
  MemoryAccount memory_;

 private:
  SpinLock list_lock_;
  Buffer* first_ = nullptr;
};

}  // namespace ltc
