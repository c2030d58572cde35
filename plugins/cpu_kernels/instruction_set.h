// The instruction set that the kernels use. Kernels are compiled for each, and a call takes the one that is chosen here.
#pragma once
#include <atomic>
#include <cstdint>

namespace ltc::cpu {

// kBaseline: any processor for which the library was built. kSse4 has its bits, but is faster.
enum class InstructionSet : uint8_t { kBaseline, kSse4, kAvx2, kAvx512 };

// The largest that this machine has.
InstructionSet largest_instruction_set();

// The kernels use `set` from now on, or less where the machine has less; without a call, the largest. Results differ between sets
// in the last digits, so call it before the first kernel. Any thread.
void use_instruction_set(InstructionSet set);

namespace detail {
extern constinit std::atomic<int> used;  // -1: not chosen yet
int use_largest();
}  // namespace detail

inline InstructionSet used_instruction_set() {
  const int set = detail::used.load(std::memory_order_relaxed);
  return static_cast<InstructionSet>(set < 0 ? detail::use_largest() : set);
}

}  // namespace ltc::cpu
