#include "core/run/queue/device_memory.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/log.h"
#include "core/ir/text.h"
#include "core/report/memory_history.h"
#include "core/run/queue/buffer.h"

namespace ltc {
namespace {

constexpr size_t kHoldersTold = 5;
constexpr uint64_t kAddressStep = 512;

}  // namespace

size_t DeviceMemory::bytes_of(const Buffer& buffer) const { return demotion_.storage_bytes(buffer.type); }

void DeviceMemory::add(Buffer& buffer, ltc_buffer* handle) {
  const size_t bytes = bytes_of(buffer);
  memory_history::Lock history(memory_history::Lock::kWhereOn);
  memory_.add(bytes);
  {
    std::lock_guard lock(list_lock_);
    buffer.handle = handle;
    buffer.generation_ = device_->generation();
    buffer.address_ = std::exchange(next_address_, next_address_ + (bytes / kAddressStep + 1) * kAddressStep);
    buffer.next_ = std::exchange(first_, &buffer);
    if (buffer.next_) buffer.next_->previous_ = &buffer;
  }
  if (history) [[unlikely]]
    history.add({memory_history::Event::kAlloc, buffer.where, this, buffer.address_, bytes});
}

ltc_buffer* DeviceMemory::remove(Buffer& buffer) {
  memory_history::Lock history(memory_history::Lock::kWhereOn);
  ltc_buffer* handle = nullptr;
  const size_t bytes = bytes_of(buffer);
  {
    std::lock_guard lock(list_lock_);
    handle = std::exchange(buffer.handle, nullptr);
    if (!handle) return nullptr;
    memory_.remove(bytes);
    (buffer.previous_ ? buffer.previous_->next_ : first_) = buffer.next_;
    if (buffer.next_) buffer.next_->previous_ = buffer.previous_;
    buffer.next_ = buffer.previous_ = nullptr;
  }
  if (history) [[unlikely]]
    history.add({memory_history::Event::kFree, buffer.where, this, buffer.address_, bytes});
  return handle;
}

std::vector<ltc_buffer*> DeviceMemory::remove_all() {
  std::vector<ltc_buffer*> handles;
  while (true) {
    Buffer* first = nullptr;
    {
      std::lock_guard lock(list_lock_);
      first = first_;
    }
    if (!first) return handles;
    handles.push_back(remove(*first));
  }
}

std::vector<DeviceMemory::Held> DeviceMemory::held() {
  std::vector<Held> all;
  std::lock_guard lock(list_lock_);
  for (const Buffer* buffer = first_; buffer; buffer = buffer->next_) {
    all.push_back({buffer->address_, bytes_of(*buffer), buffer->where});
  }
  return all;
}

void DeviceMemory::note_refusal(size_t bytes, LocationId where) {
  memory_.add_refusal();
  if (!memory_history::enabled()) return;
  uint64_t free_bytes = 0;
  try {
    const host::MemoryStats stats = device_->memory_stats();
    if (stats.limit_bytes && stats.in_use_bytes)
      free_bytes = *stats.limit_bytes - std::min(*stats.limit_bytes, *stats.in_use_bytes);
  } catch (const Error& error) {
    log::debug("memory_stats: ", error.what());
  }
  memory_history::Lock history(memory_history::Lock::kWhereOn);
  if (history) history.add({memory_history::Event::kRefused, where, this, 0, bytes, free_bytes});
}

std::string DeviceMemory::text() {
  std::string text = cat("the program's values hold ", size_text(memory_.stats().bytes.current), " of the device");
  const auto known = [&](const char* what, std::optional<uint64_t> bytes) {
    if (bytes) text += cat(", ", what, " ", size_text(static_cast<int64_t>(*bytes)));
  };
  try {
    const host::MemoryStats stats = device_->memory_stats();
    known("which says it has in use", stats.in_use_bytes);
    known("of at most", stats.limit_bytes);
    known("the largest free block is", stats.largest_free_bytes);
  } catch (const Error& error) {
    log::debug("memory_stats: ", error.what());
  }
  const std::string holders = largest_holders();
  return holders.empty() ? text : cat(text, "; most: ", holders);
}

// The kinds of values that take most of it: "3 x f32[4096,4096] 192 MB, ...".
std::string DeviceMemory::largest_holders() {
  struct Holder {
    size_t count = 0, bytes = 0;
  };
  std::map<TypeId, Holder> by_type;
  {
    std::lock_guard lock(list_lock_);
    for (const Buffer* buffer = first_; buffer; buffer = buffer->next_) {
      Holder& holder = by_type[buffer->type];
      ++holder.count;
      holder.bytes += bytes_of(*buffer);
    }
  }
  std::vector<std::pair<TypeId, Holder>> sorted(by_type.begin(), by_type.end());
  std::ranges::sort(sorted, std::greater(), [](const auto& entry) { return entry.second.bytes; });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kHoldersTold); ++i) {
    const auto& [type, holder] = sorted[i];
    text += cat(i ? ", " : "", holder.count, " x ", type_text(type), " ", size_text(static_cast<int64_t>(holder.bytes)));
  }
  return text;
}

}  // namespace ltc
