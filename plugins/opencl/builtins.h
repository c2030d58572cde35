// The functions of OpenCL C that generated kernels and those of gemm.h call.
//
// PoCL reads clang's declarations of all of OpenCL C before each kernel, 18000 lines, four fifths of the time of its front end. A
// macro that guards them keeps them out.
#pragma once
#include <string_view>

namespace ltc::opencl {

inline constexpr std::string_view kOwnBuiltinsOption = " -D_OPENCL_H_";

inline constexpr std::string_view kOwnBuiltins = R"(#define FN(result) result __attribute__((overloadable, const))
#define ONE_OF(T, f) FN(T) f(T);
#define TWO_OF(T, f) FN(T) f(T, T);
#define EACH(OF, f) OF(float, f) OF(float16, f) OF(double, f)
EACH(ONE_OF, fabs) EACH(ONE_OF, floor) EACH(ONE_OF, ceil) EACH(ONE_OF, trunc) EACH(ONE_OF, rint) EACH(ONE_OF, sqrt)
EACH(ONE_OF, exp) EACH(ONE_OF, expm1) EACH(ONE_OF, log) EACH(ONE_OF, log1p) EACH(ONE_OF, sin) EACH(ONE_OF, cos) EACH(ONE_OF, tan)
EACH(ONE_OF, tanh) EACH(ONE_OF, atan) EACH(ONE_OF, erf) EACH(ONE_OF, lgamma)
EACH(TWO_OF, fmod) EACH(TWO_OF, pow) EACH(TWO_OF, atan2)
FN(float) fma(float, float, float);
FN(float16) fma(float16, float16, float16);
FN(int) min(int, int);
FN(size_t) get_global_id(uint);
FN(int16) convert_int16(uchar16);
FN(uchar16) convert_uchar16(int16);
FN(float16) convert_float16(double16);
FN(double16) convert_double16(float16);
#define MEMORY(T, SPACE) \
  T##16 __attribute__((overloadable, pure)) vload16(size_t, const SPACE T*); \
  void __attribute__((overloadable)) vstore16(T##16, size_t, SPACE T*);
MEMORY(float, __global) MEMORY(float, __private) MEMORY(uchar, __global)
#undef FN
)";

}  // namespace ltc::opencl
