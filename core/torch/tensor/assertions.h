// Assertions about values that the program does not wait for, such as torch._assert_async.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "core/base/api.h"
#include "core/run/device/lazy_device.h"

namespace ltc {

// Remembers to check that this boolean scalar of the device holds. The message gets the line of the op at hand. With LTC_EAGER it
// is checked here.
void assert_later(const at::Tensor& condition, std::string message);

// Called where the host reads a value of the device or waits for it: throws the message of the first assertion since the last
// call that does not hold, and forgets all. Without any it costs one load.
LTC_API void check_assertions(LazyDevice& device);

}  // namespace ltc
