#include "core/torch/tensor/current_device.h"

#include "core/run/device/device_table.h"

namespace ltc {
namespace {

thread_local c10::DeviceIndex t_current = 0;

}  // namespace

c10::DeviceIndex current_device() { return t_current; }
void set_current_device(c10::DeviceIndex device) { t_current = device; }
c10::DeviceIndex device_count() { return static_cast<c10::DeviceIndex>(DeviceTable::instance().count()); }

}  // namespace ltc
