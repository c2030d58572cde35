#include "pool.h"

#include <algorithm>
#include <bit>

#include "errors.h"

namespace ltc::opencl {
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
  Block block{{}, size};
  const auto found = free_.find(size);
  if (found != free_.end() && !found->second.empty()) {
    block.memory = std::move(found->second.back());
    found->second.pop_back();
    cached_ -= size;
  } else {
    if (in_use_ + cached_ + size > memory_bytes_) trim_locked();
    cl_int error = in_use_ + size > memory_bytes_ ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_SUCCESS;
    for (int attempt = 0; attempt < 2 && error == CL_SUCCESS && !block.memory; ++attempt) {
      block.memory = Memory(clCreateBuffer(context_, CL_MEM_READ_WRITE, size, nullptr, &error));
      if (error == CL_SUCCESS || attempt == 1) break;
      trim_locked();
      error = CL_SUCCESS;
    }
    if (error != CL_SUCCESS) {
      throw Failure(LTC_RESOURCE_EXHAUSTED, "no device memory for " + std::to_string(size_bytes) +
                                                " bytes: " + std::to_string(in_use_) + " of " + std::to_string(memory_bytes_) +
                                                " are in use (" + error_name(error) + ")");
    }
  }
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  return block;
}

void MemoryPool::give(Block block) noexcept {
  if (!block.memory) return;
  const std::lock_guard guard(lock_);
  in_use_ -= block.size_bytes;
  try {
    free_[block.size_bytes].push_back(std::move(block.memory));
    cached_ += block.size_bytes;
  } catch (...) {  // no host memory for the note: then the block goes back to OpenCL
  }
}

void MemoryPool::trim() noexcept {
  const std::lock_guard guard(lock_);
  trim_locked();
}

void MemoryPool::trim_locked() noexcept {
  free_.clear();
  cached_ = 0;
}

MemoryPool::Statistics MemoryPool::statistics() const {
  const std::lock_guard guard(lock_);
  return {in_use_, peak_, cached_};
}

}  // namespace ltc::opencl
