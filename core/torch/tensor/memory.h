// Device memory as PyTorch's users ask for it, and host memory that they want pinned.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "core/run/device/lazy_device.h"

namespace ltc {

// The memory that the device's buffers take now, and took. `reserved_bytes` is the plugin's own figure, with the peak since the
// device was opened, or the same as `allocated_bytes` where the plugin does not say. Does not wait for what is queued.
c10::CachingDeviceAllocator::DeviceStats memory_stats(LazyDevice& device);

// Free and total bytes; throws where the plugin does not say.
std::pair<size_t, size_t> memory_info(LazyDevice& device);

// Ordinary host memory that is remembered as pinned: no plugin asks for more, is_pinned() answers what programs expect, and
// pinning a pinned tensor copies nothing.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);

}  // namespace ltc
