// Device memory that is used again instead of given back.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/driver.h"

namespace ltc::device {

// A piece of memory of at least the size that was asked for.
struct Block {
  Memory memory = nullptr;
  uint64_t size_bytes = 0;
};

// All work of a device runs in the order of one queue, so a block may be taken again as soon as the last work that uses it is
// submitted. Any thread.
class MemoryPool {
 public:
  explicit MemoryPool(Driver& driver) : MemoryPool(driver, driver.facts().memory_bytes, driver.facts().largest_buffer_bytes) {}
  MemoryPool(Driver& driver, uint64_t memory_bytes, uint64_t largest_bytes)
      : driver_(driver), memory_bytes_(memory_bytes), largest_bytes_(largest_bytes) {}
  ~MemoryPool() { trim(); }
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Never smaller than 64 bytes. Throws RESOURCE_EXHAUSTED, with the figures, where the device has no more.
  Block take(uint64_t size_bytes);
  void give(Block block) noexcept;
  // Gives unused blocks back to the device.
  void trim() noexcept;

  struct Statistics {
    uint64_t in_use_bytes, peak_bytes, cached_bytes;
  };
  Statistics statistics() const;

 private:
  Memory allocate(uint64_t asked_bytes, uint64_t size);
  [[noreturn]] void refuse(uint64_t asked_bytes, const std::string& why) const;
  void trim_locked() noexcept;

  Driver& driver_;
  uint64_t memory_bytes_, largest_bytes_;
  mutable std::mutex lock_;
  struct Sort {
    std::vector<Memory> free = {};
    uint64_t taken = 0;  // blocks
  };
  std::map<uint64_t, Sort> sorts_;  // by size
  uint64_t in_use_ = 0, peak_ = 0, cached_ = 0;
};

}  // namespace ltc::device
