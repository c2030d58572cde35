// Addresses of PTX as places in memory, each access checked.
#pragma once
#include "cuda/emulator/races.h"
#include "cuda/emulator/values.h"

namespace ltc::emulator {

enum class Space { kGeneric, kParam, kGlobal, kShared, kLocal, kConst };

inline void check_alignment(const Thread& thread, uint64_t address, size_t bytes) {
  if (address % bytes == 0) return;
  thread.fail(CUDA_ERROR_MISALIGNED_ADDRESS, "of an address that is no multiple of " + std::to_string(bytes));
}

// `value`: what is about to be written, or null.
template <Space kSpace>
std::byte* place(Thread& thread, uint64_t address, size_t bytes, Access access, const void* value = nullptr) {
  if constexpr (kSpace == Space::kGeneric) {
    if (address - kSharedWindow < kWindowBytes)
      return place<Space::kShared>(thread, address - kSharedWindow, bytes, access, value);
    if (address - kLocalWindow < kWindowBytes) return place<Space::kLocal>(thread, address - kLocalWindow, bytes, access, value);
    return place<Space::kGlobal>(thread, address, bytes, access, value);
  } else {
    check_alignment(thread, address, bytes);
    if constexpr (kSpace == Space::kParam) return thread.param_place(address, bytes);
    if constexpr (kSpace == Space::kLocal) return thread.local_place(address, bytes);
    if constexpr (kSpace == Space::kShared) {
      std::byte* found = thread.block->shared_place(thread, address, bytes);
      check_shared(thread, address, bytes, access, value);
      return found;
    }
    std::byte* found = thread.block->launch->global_place(thread, address, bytes);
    if constexpr (kSpace == Space::kGlobal) check_global(thread, address, bytes, access, value);
    return found;
  }
}

// The operand [a + b].
inline uint64_t address_of(const Thread& thread, const Instruction& in, int i) {
  return thread.registers[in.slots[i]] + static_cast<uint64_t>(static_cast<int64_t>(in.offset));
}
// Shared and local addresses may be in registers of 32 bits.
template <Space kSpace>
uint64_t address_in(const Thread& thread, const Instruction& in, int i) {
  const uint64_t address = address_of(thread, in, i);
  return kSpace == Space::kShared || kSpace == Space::kLocal ? address & 0xffffffff : address;
}

}  // namespace ltc::emulator
