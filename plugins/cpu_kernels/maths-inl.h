// kernels/print/maths.h, compiled once per target.
#if defined(LTC_CPU_KERNELS_MATHS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LTC_CPU_KERNELS_MATHS_INL_H_
#undef LTC_CPU_KERNELS_MATHS_INL_H_
#else
#define LTC_CPU_KERNELS_MATHS_INL_H_
#endif

#include <hwy/highway.h>

// C's macro for machines with fused multiply-add, of which maths.h makes its choice. <math.h> defines it for the baseline only.
#include <math.h>
#undef FP_FAST_FMAF
#if HWY_NATIVE_FMA
#define FP_FAST_FMAF 1
#endif

HWY_BEFORE_NAMESPACE();
namespace ltc::cpu {
namespace HWY_NAMESPACE {

#include "kernels/print/maths.h"

}  // namespace HWY_NAMESPACE
}  // namespace ltc::cpu
HWY_AFTER_NAMESPACE();
#endif
