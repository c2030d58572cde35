// A launch of a kernel, run on the calling thread.
#pragma once
#include <string>
#include <vector>

#include "cuda/emulator/memory.h"
#include "cuda/emulator/thread.h"

namespace ltc::emulator {

// In which order blocks, warps and lanes get their turn; from CUDA_EMULATOR_ORDER: forward, backward, or a number that begins a
// random one.
class Order {
 public:
  Order();
  // The numbers 0 to count - 1.
  std::vector<uint32_t> of(uint64_t count);
  bool is_random() const { return kind_ == kRandom; }
  uint32_t random() { return seed_ = seed_ * 1664525 + 1013904223, seed_ >> 8; }

 private:
  enum { kForward, kBackward, kRandom } kind_ = kForward;
  uint32_t seed_ = 1;
};

std::string hex(uint64_t number);  // for messages: "0x1f"

struct Launch {
  const Module* module = nullptr;
  const Function* kernel = nullptr;
  Dimensions grid, block;
  std::vector<std::byte> params;
  uint32_t dynamic_shared_bytes = 0;
  int device = 0;
  Memory* memory = nullptr;
  Shadow* shadow = nullptr;
  Order* order = nullptr;

  // Numbers of segments: of the launch's first, its block's first, and now. They go on from launch to launch.
  uint64_t first_segment = 0, block_segment = 0, segment = 0;
  uint64_t jumps = 0;  // backward, of all threads

  // Throws the Fault that ends it. `segments`: the last number that was given, before and after.
  void run(uint64_t& segments);

  std::byte* global_place(const Thread& thread, uint64_t address, size_t bytes);

 private:
  Allocation recent_[4];
  unsigned next_recent_ = 0;
};

}  // namespace ltc::emulator
