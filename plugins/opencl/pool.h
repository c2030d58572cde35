// Device memory that is used again instead of given back.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "handle.h"

namespace ltc::opencl {

// A piece of memory of at least the size that was asked for.
struct Block {
  Memory memory;
  uint64_t size_bytes = 0;
};

// All work of a device runs in the order of one queue, so a block may be taken again as soon as the last work that uses it is
// submitted. Any thread.
class MemoryPool {
 public:
  MemoryPool(cl_context context, uint64_t memory_bytes, uint64_t largest_bytes)
      : context_(context), memory_bytes_(memory_bytes), largest_bytes_(largest_bytes) {}

  // Never smaller than 64 bytes. Throws RESOURCE_EXHAUSTED, with the figures, where OpenCL has no more.
  Block take(uint64_t size_bytes);
  void give(Block block) noexcept;
  // Gives unused blocks back to OpenCL.
  void trim() noexcept;

  struct Statistics {
    uint64_t in_use_bytes, peak_bytes, cached_bytes;
  };
  Statistics statistics() const;

 private:
  void trim_locked() noexcept;

  cl_context context_;
  uint64_t memory_bytes_, largest_bytes_;
  mutable std::mutex lock_;
  std::map<uint64_t, std::vector<Memory>> free_;  // by size
  uint64_t in_use_ = 0, peak_ = 0, cached_ = 0;
};

}  // namespace ltc::opencl
