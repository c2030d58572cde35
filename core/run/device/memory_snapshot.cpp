#include "core/run/device/memory_snapshot.h"

#include "core/run/device/device_table.h"

namespace ltc {

std::vector<MemorySnapshot> memory_snapshots() {
  std::vector<LazyDevice*> devices;
  DeviceTable::instance().for_each([&](LazyDevice& device) { devices.push_back(&device); });
  const memory_history::Lock history(memory_history::Lock::kAlways);
  const std::vector<memory_history::Event> events = history.events();
  std::vector<MemorySnapshot> snapshots;
  for (LazyDevice* device : devices) {
    MemorySnapshot& snapshot = snapshots.emplace_back(device->ordinal(), device->queue().held());
    for (const memory_history::Event& event : events) {
      if (event.memory == static_cast<DeviceMemory*>(&device->queue())) snapshot.events.push_back(event);
    }
  }
  return snapshots;
}

}  // namespace ltc
