// The devices' memory: memory of the host, whose allocations are known.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace ltc::emulator {

uint64_t environment_number(const char* name, uint64_t otherwise);

struct Allocation {
  uint64_t begin = 0, bytes = 0;
  int device = 0;
  uint32_t readers = 0;     // devices whose kernels and copies may use it too, as bits
  bool given_back = false;  // by a call; it may still have to run
  bool live = false;        // between its allocation and its release in the order of the stream
  uint64_t end() const { return begin + bytes; }
};

// Addresses are never used twice, so that each use after a release is found. All methods are called under the driver's lock.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Null: the device has no room, which includes memory whose release has not run yet.
  Allocation* allocate(int device, uint64_t bytes, uint32_t readers);
  // Fills fresh memory with bytes 0xff: NaN as F16, BF16, F32 and F64, -1 as integers.
  void begin(Allocation& allocation);
  // Its pages refuse the host's accesses from now on. The reference is of no use behind this.
  void release(Allocation& allocation);

  // The one that was made at this address, or null.
  Allocation* at(uint64_t address);
  // The live one that holds the bytes and that the device may use. Null: an illegal address, and `why` says in which way.
  const Allocation* holder(int device, uint64_t address, uint64_t bytes, std::string* why) const;
  uint64_t limit() const { return limit_; }
  void admit(int device, int reader);

 private:
  uint64_t base_ = 0, next_ = 0, limit_ = 0;
  std::map<uint64_t, Allocation> allocations_;
  Allocation released_[256];  // the last ones, for the messages
  size_t next_released_ = 0;
  std::map<int, uint64_t> used_;
};

}  // namespace ltc::emulator
