// A device, and how much of its memory the host holds: what buffers need of the queue that they came from.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/spin_lock.h"
#include "core/compile/lowering/type_demotion.h"
#include "core/host/plugin.h"
#include "core/ir/location.h"
#include "core/run/queue/memory_account.h"

namespace ltc {

struct Buffer;

class DeviceMemory {
 public:
  explicit DeviceMemory(std::unique_ptr<host::PluginDevice> device)
      : device_(std::move(device)), demotion_(TypeDemotion::of(*device_)) {}

  host::PluginDevice& device() { return *device_; }
  const TypeDemotion& demotion() const { return demotion_; }  // of what the device keeps
  MemoryAccount& memory() { return memory_; }

  // The buffers that have memory of the device. A buffer enters the list with its handle and leaves it with that. Any thread.
  void add(Buffer& buffer, ltc_buffer* handle);
  ltc_buffer* remove(Buffer& buffer);  // its handle, the caller's now; null if it has none
  std::vector<ltc_buffer*> remove_all();

  // A buffer that has memory. `address` is a number that no other buffer of the device ever has in its range of `bytes`.
  struct Held {
    uint64_t address, bytes;
    LocationId where;
  };
  std::vector<Held> held();

  // For a request of so many bytes that the device refused, made for the user's line `where`.
  void note_refusal(size_t bytes, LocationId where);
  // The holders of the memory, for errors: "the program's values hold 192 MB of the device, ...; most: 3 x f32[4096,4096] 192
  // MB".
  std::string text();

 protected:
  ~DeviceMemory() = default;

  const std::unique_ptr<host::PluginDevice> device_;
  const TypeDemotion demotion_;
  MemoryAccount memory_;

 private:
  size_t bytes_of(const Buffer& buffer) const;
  std::string largest_holders();

  SpinLock list_lock_;
  Buffer* first_ = nullptr;
  uint64_t next_address_ = 1 << 20;
};

}  // namespace ltc
