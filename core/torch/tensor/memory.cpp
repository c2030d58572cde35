#include "core/torch/tensor/memory.h"

#include <ATen/core/CachingHostAllocator.h>

#include <map>
#include <mutex>

namespace ltc {
namespace {

using c10::CachingAllocator::StatArray;

StatArray to_stats(const MemoryStat& stat) {
  StatArray result;
  auto& total = result[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  total.current = stat.current;
  total.peak = stat.peak;
  total.allocated = stat.added;
  total.freed = stat.removed;
  return result;
}

// Leaked: tensors over pinned memory may be destroyed after static objects.
struct PinnedRanges {
  std::mutex mutex;
  std::map<uintptr_t, size_t> size_by_begin;
};

PinnedRanges& pinned_ranges() {
  static auto* instance = new PinnedRanges();
  return *instance;
}

void unpin(void* context) {
  const std::unique_ptr<c10::DataPtr> data(static_cast<c10::DataPtr*>(context));
  std::lock_guard lock(pinned_ranges().mutex);
  pinned_ranges().size_by_begin.erase(reinterpret_cast<uintptr_t>(data->get()));
}

class PinnedAllocator final : public at::HostAllocator {
 public:
  c10::DataPtr allocate(size_t size_bytes) override {
    auto data = std::make_unique<c10::DataPtr>(c10::GetAllocator(c10::kCPU)->allocate(size_bytes));
    void* begin = data->get();
    if (begin) {
      std::lock_guard lock(pinned_ranges().mutex);
      pinned_ranges().size_by_begin[reinterpret_cast<uintptr_t>(begin)] = size_bytes;
    }
    return {begin, data.release(), &unpin, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }  // data is not context
  void copy_data(void* to, const void* from, size_t size_bytes) const override { default_copy_data(to, from, size_bytes); }

  // PyTorch asks this of allocators that keep memory for later: this one keeps none, and no account.
  bool record_event(void*, void*, c10::Stream) override { return true; }
  void empty_cache() override {}
  at::HostStats get_stats() override { return {}; }
  void reset_accumulated_stats() override {}
  void reset_peak_stats() override {}
};

PinnedAllocator g_pinned_allocator;
REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, &g_pinned_allocator);

}  // namespace

c10::CachingDeviceAllocator::DeviceStats memory_stats(LazyDevice& device) {
  const MemoryAccount::Stats held = device.queue().memory().stats();
  const host::MemoryStats plugin = device.queue().device().memory_stats();
  MemoryStat reserved = held.bytes;
  if (plugin.in_use_bytes) {
    reserved.current = static_cast<int64_t>(*plugin.in_use_bytes);
    const uint64_t peak = plugin.peak_bytes.value_or(0);
    reserved.peak = peak > held.plugin_peak_at_reset ? static_cast<int64_t>(peak) : std::max(reserved.peak, reserved.current);
  }
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocated_bytes = stats.active_bytes = stats.requested_bytes = to_stats(held.bytes);
  stats.allocation = stats.active = stats.segment = to_stats(held.buffers);
  stats.reserved_bytes = to_stats(reserved);
  stats.num_device_alloc = held.buffers.added;
  stats.num_device_free = held.buffers.removed;
  stats.num_alloc_retries = held.retries;
  stats.num_ooms = held.refusals;
  return stats;
}

void reset_peak_memory(LazyDevice& device) {
  device.queue().memory().reset_peak(device.queue().device().memory_stats().peak_bytes.value_or(0));
}

std::pair<size_t, size_t> memory_info(LazyDevice& device) {
  const host::MemoryStats plugin = device.queue().device().memory_stats();
  const uint64_t total = plugin.limit_bytes.value_or(device.queue().device().info().memory_bytes);
  TORCH_CHECK_NOT_IMPLEMENTED(total != 0, "the plugin does not say how much memory device ltc:", device.ordinal(), " has");
  const uint64_t used = plugin.in_use_bytes.value_or(static_cast<uint64_t>(device.queue().memory().stats().bytes.current));
  return {total - std::min(used, total), total};
}

c10::Allocator* pinned_allocator() { return &g_pinned_allocator; }

bool is_pinned(const void* data) {
  std::lock_guard lock(pinned_ranges().mutex);
  const auto& ranges = pinned_ranges().size_by_begin;
  auto after = ranges.upper_bound(reinterpret_cast<uintptr_t>(data));
  return after != ranges.begin() && reinterpret_cast<uintptr_t>(data) < (--after)->first + after->second;
}

}  // namespace ltc
