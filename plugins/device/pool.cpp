#include "device/pool.h"

#include <algorithm>
#include <bit>

namespace ltc::device {
namespace {

// Four sizes to each power of two: little is wasted, and sizes that are nearly alike share blocks.
uint64_t rounded(uint64_t size) {
  size = std::max<uint64_t>(size, 64);
  const uint64_t step = std::max<uint64_t>(std::bit_floor(size) / 4, 64);
  return (size + step - 1) / step * step;
}

}  // namespace

Block MemoryPool::take(uint64_t size_bytes) {
  if (size_bytes > largest_bytes_) {
    throw Failure(LTC_RESOURCE_EXHAUSTED, "a buffer of " + std::to_string(size_bytes) + " bytes; the device's largest is " +
                                              std::to_string(largest_bytes_));
  }
  const uint64_t size = std::min(rounded(size_bytes), std::max<uint64_t>(largest_bytes_, 64));
  const std::lock_guard guard(lock_);
  Sort& sort = sorts_[size];
  // So that give needs no memory.
  if (sort.free.capacity() <= sort.free.size() + sort.taken) sort.free.reserve(2 * (sort.free.size() + sort.taken) + 8);
  Block block{nullptr, size};
  if (!sort.free.empty()) {
    block.memory = sort.free.back();
    sort.free.pop_back();
    cached_ -= size;
  } else {
    block.memory = allocate(size_bytes, size);
  }
  ++sort.taken;
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  return block;
}

// Unused memory goes back to the system before a request is refused.
Memory MemoryPool::allocate(uint64_t asked_bytes, uint64_t size) {
  if (in_use_ + cached_ + size > memory_bytes_) trim_locked();
  if (in_use_ + size > memory_bytes_) refuse(asked_bytes, "no more than that");
  try {
    return driver_.allocate(size);
  } catch (const Failure& failure) {
    if (failure.error().code != LTC_RESOURCE_EXHAUSTED) throw;
  }
  trim_locked();
  try {
    return driver_.allocate(size);
  } catch (const Failure& failure) {
    if (failure.error().code != LTC_RESOURCE_EXHAUSTED) throw;
    refuse(asked_bytes, failure.error().message);
  }
}

void MemoryPool::refuse(uint64_t asked_bytes, const std::string& why) const {
  std::vector<std::pair<uint64_t, uint64_t>> holders;  // bytes in all, size
  for (const auto& [size, sort] : sorts_) {
    if (sort.taken > 0) holders.emplace_back(sort.taken * size, size);
  }
  std::ranges::sort(holders, std::greater());
  std::string text = "no device memory for " + std::to_string(asked_bytes) + " bytes: " + std::to_string(in_use_) + " of " +
                     std::to_string(memory_bytes_) + " are in use (" + why + ")";
  for (size_t i = 0; i < std::min<size_t>(holders.size(), 3); ++i) {
    const auto [all, size] = holders[i];
    text += (i ? ", " : "; most by ") + std::to_string(all / size) + " of " + std::to_string(size) + " bytes";
  }
  throw Failure(LTC_RESOURCE_EXHAUSTED, text);
}

void MemoryPool::give(Block block) noexcept {
  if (!block.memory) return;
  const std::lock_guard guard(lock_);
  Sort& sort = sorts_.find(block.size_bytes)->second;
  sort.free.push_back(block.memory);
  --sort.taken;
  in_use_ -= block.size_bytes;
  cached_ += block.size_bytes;
}

void MemoryPool::trim() noexcept {
  const std::lock_guard guard(lock_);
  trim_locked();
}

void MemoryPool::trim_locked() noexcept {
  for (auto& [size, sort] : sorts_) {
    for (const Memory memory : sort.free) driver_.release(memory);
    sort.free.clear();
  }
  cached_ = 0;
}

MemoryPool::Statistics MemoryPool::statistics() const {
  const std::lock_guard guard(lock_);
  return {in_use_, peak_, cached_};
}

}  // namespace ltc::device
