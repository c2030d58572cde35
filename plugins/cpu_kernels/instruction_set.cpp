#include "cpu_kernels/instruction_set.h"

#include <algorithm>

namespace ltc::cpu {

constinit std::atomic<int> detail::used = -1;

// Highway's targets ask for these.
InstructionSet largest_instruction_set() {
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                        __builtin_cpu_supports("bmi2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (has_avx512) return InstructionSet::kAvx512;
  if (has_avx2) return InstructionSet::kAvx2;
  return __builtin_cpu_supports("sse4.2") ? InstructionSet::kSse4 : InstructionSet::kBaseline;
#else
  return InstructionSet::kBaseline;
#endif
}

void use_instruction_set(InstructionSet set) { detail::used = static_cast<int>(std::min(set, largest_instruction_set())); }

int detail::use_largest() {
  int none = -1;
  used.compare_exchange_strong(none, static_cast<int>(largest_instruction_set()));
  return used;
}

}  // namespace ltc::cpu
