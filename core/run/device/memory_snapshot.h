// The memory of all devices in use at one moment, and what its history has kept (report/memory_history.h).
#pragma once

#include <vector>

#include "core/base/api.h"
#include "core/report/memory_history.h"
#include "core/run/queue/device_memory.h"

namespace ltc {

struct MemorySnapshot {
  uint32_t device = 0;  // ordinal
  std::vector<DeviceMemory::Held> held;
  std::vector<memory_history::Event> events;
};

// Waits for nothing that is queued.
LTC_API std::vector<MemorySnapshot> memory_snapshots();

}  // namespace ltc
