// The search for accesses that nothing orders.
#pragma once
#include "cuda/emulator/launch.h"

namespace ltc::emulator {

// Kinds of access, for the reports and the search for races.
enum class Access { kRead, kWrite, kAtomic };

// Throws a Fault where the access is in no order with another one. `value`: what is written, or null.
void check_shared(const Thread& thread, uint64_t address, size_t bytes, Access access, const void* value);
void check_global(const Thread& thread, uint64_t address, size_t bytes, Access access, const void* value);

}  // namespace ltc::emulator
