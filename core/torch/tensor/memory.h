// Device memory as PyTorch's users ask for it, and host memory that they want pinned.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include "core/run/device/lazy_device.h"

namespace ltc {

// The memory that the device's buffers take now, and took. `reserved_bytes` is the plugin's own figure, or the same as
// `allocated_bytes` where the plugin does not say. A plugin never forgets its peak: after reset_peak_memory() a lower one is that
// of `allocated_bytes`. Neither function waits for what is queued.
c10::CachingDeviceAllocator::DeviceStats memory_stats(LazyDevice& device);
void reset_peak_memory(LazyDevice& device);

// Free and total bytes; throws where the plugin does not say.
std::pair<size_t, size_t> memory_info(LazyDevice& device);

// Ordinary host memory that is remembered as pinned: no plugin asks for more, is_pinned() answers what programs expect, and
// pinning a pinned tensor copies nothing.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);

}  // namespace ltc
