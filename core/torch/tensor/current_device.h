// The devices of the process, and the current one of a thread.
#pragma once

#include <c10/core/Device.h>

#include "core/base/api.h"

namespace ltc {

inline constexpr int kMaxDevices = 16;  // ordinals of a process

LTC_API c10::DeviceIndex current_device();  // of this thread
LTC_API void set_current_device(c10::DeviceIndex device);
LTC_API c10::DeviceIndex device_count();  // loads the plugins that LTC_BACKEND names; throws if that fails

}  // namespace ltc
