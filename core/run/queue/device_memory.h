// A device, and how much of its memory the host holds: what buffers need of the queue that they came from.
#pragma once

#include <memory>
#include <utility>

#include "core/host/plugin.h"
#include "core/run/queue/memory_account.h"

namespace ltc {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::unique_ptr<host::PluginDevice> device) : device_(std::move(device)) {}

  host::PluginDevice& device() { return *device_; }
  MemoryAccount& memory() { return memory_; }

 protected:
  ~DeviceMemory() = default;

  const std::unique_ptr<host::PluginDevice> device_;
  MemoryAccount memory_;
};

}  // namespace ltc
