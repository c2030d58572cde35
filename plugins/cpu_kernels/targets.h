// Highway's targets of this library. A file of kernels begins with
//
//   #include "cpu_kernels/targets.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "cpu_kernels/NAME.cpp"
//   #include <hwy/foreach_target.h>
//
// and is compiled again for each target. Only Highway's headers are used: Debian has its library as a shared one, which a wheel
// would have to carry, so the choice between targets is ours.
#pragma once
// Version 1.0.3 has no target for SSE2. Its portable one is broken by GCC 12 only where 16 bits are multiplied.
#define HWY_BROKEN_EMU128 0
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// Not used, and a compiler may not know how to ask for them.
#define HWY_DISABLE_F16C
#define HWY_DISABLE_PCLMUL_AES
#define HWY_IS_DEBUG_BUILD 0  // its checks would call the library
#include <hwy/detect_targets.h>

#include "cpu_kernels/instruction_set.h"

namespace ltc::cpu::detail {

template <typename Function>
inline Function choose(Function baseline, [[maybe_unused]] Function sse4, [[maybe_unused]] Function avx2,
                       [[maybe_unused]] Function avx512) {
#if defined(__x86_64__)
  switch (used_instruction_set()) {
    case InstructionSet::kAvx512: return avx512;
    case InstructionSet::kAvx2: return avx2 ? avx2 : baseline;
    case InstructionSet::kSse4: return sse4 ? sse4 : baseline;
    case InstructionSet::kBaseline: return baseline;
  }
#endif
  return baseline;
}

}  // namespace ltc::cpu::detail

// After all targets: the function of that name which the chosen instruction set has. A target that the compiler takes for granted
// anyhow stands for all below it.
#define LTC_CHOSEN(function)                                                                                                     \
  ::ltc::cpu::detail::choose<decltype(&HWY_STATIC_DISPATCH(function))>(HWY_CHOOSE_FALLBACK(function), HWY_CHOOSE_SSE4(function), \
                                                                       HWY_CHOOSE_AVX2(function), HWY_CHOOSE_AVX3(function))
