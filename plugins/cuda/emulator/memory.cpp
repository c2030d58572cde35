#include "cuda/emulator/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <iterator>

namespace ltc::emulator {
namespace {

constexpr uint64_t kReserved = uint64_t{1} << 44, kAlignment = 512, kPage = 4096;

uint64_t up_to(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

uint64_t environment_number(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

Memory::Memory() {
  void* reserved = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved != MAP_FAILED) base_ = next_ = reinterpret_cast<uint64_t>(reserved);
  limit_ = environment_number("CUDA_EMULATOR_MEMORY", 4096) << 20;
}

Memory::~Memory() {
  if (base_) munmap(reinterpret_cast<void*>(base_), kReserved);
}

// At least a page lies between two allocations, and each begins at other bytes of a page, as a device's do.
Allocation* Memory::allocate(int device, uint64_t bytes, uint32_t readers) {
  if (!base_ || bytes == 0 || bytes > limit_ || used_[device] > limit_ - bytes) return nullptr;
  const uint64_t begin = next_ + kAlignment * (allocations_.size() % 8), end = up_to(begin + bytes, kPage);
  if (end + kPage > base_ + kReserved) return nullptr;
  if (mprotect(reinterpret_cast<void*>(next_), end - next_, PROT_READ | PROT_WRITE) != 0) return nullptr;
  next_ = end + kPage;
  used_[device] += bytes;
  return &(allocations_[begin] = {begin, bytes, device, readers | 1U << device, false});
}

void Memory::begin(Allocation& allocation) {
  allocation.live = true;
  // Far fewer faults of pages.
  const uint64_t page = up_to(allocation.begin, kPage);
  if (allocation.bytes >= 4 << 20) madvise(reinterpret_cast<void*>(page), allocation.end() - page, MADV_HUGEPAGE);
  std::memset(reinterpret_cast<void*>(allocation.begin), 0xff, allocation.bytes);
}

void Memory::release(Allocation& allocation) {
  used_[allocation.device] -= allocation.bytes;
  released_[next_released_++ % std::size(released_)] = allocation;
  const uint64_t page = allocation.begin / kPage * kPage, bytes = up_to(allocation.end(), kPage) - page;
  madvise(reinterpret_cast<void*>(page), bytes, MADV_DONTNEED);
  mprotect(reinterpret_cast<void*>(page), bytes, PROT_NONE);
  allocations_.erase(allocation.begin);
}

Allocation* Memory::at(uint64_t address) {
  const auto it = allocations_.find(address);
  return it == allocations_.end() ? nullptr : &it->second;
}

const Allocation* Memory::holder(int device, uint64_t address, uint64_t bytes, std::string* why) const {
  const auto after = allocations_.upper_bound(address);
  const Allocation* found = after == allocations_.begin() ? nullptr : &std::prev(after)->second;
  const auto text = [](const Allocation& one) { return "an allocation of " + std::to_string(one.bytes) + " bytes"; };
  for (const Allocation& released : released_) {
    if (address - released.begin < released.bytes) return *why = text(released) + " was there, and was given back", nullptr;
  }
  if (!found || address >= found->end() + kPage) return *why = "no allocation is there", nullptr;
  if (address + bytes > found->end() || address + bytes < address) {
    return *why = std::to_string(address + bytes - found->end()) + " bytes past " + text(*found), nullptr;
  }
  if (!found->live) return *why = text(*found) + " is not there yet", nullptr;
  if (!(found->readers >> device & 1)) return *why = text(*found) + " of another device", nullptr;
  return found;
}

void Memory::admit(int device, int reader) {
  for (auto& [begin, allocation] : allocations_) {
    if (allocation.device == device) allocation.readers |= 1U << reader;
  }
}

}  // namespace ltc::emulator
