#include "kernels/print/dialect.h"

namespace ltc::kernels {
namespace {

constexpr std::string_view kMaths[] = {"exp", "expm1", "log", "log1p", "tanh", "erf", "sigmoid"};

constexpr MathsForm kOpenClMaths[] = {
    {"f32", R"(#define F float
#define U uint
#define BITS(x) as_uint(x)
#define FLOAT(u) as_float(u)
#define FUSED(a, b, c) fma(a, b, c)
#define NAME(f) ltc_##f##_f32
)"},
    {"f32x16", R"(#define F float16
#define U uint16
#define BITS(x) as_uint16(x)
#define FLOAT(u) as_float16(u)
#define FUSED(a, b, c) fma(a, b, c)
#define NAME(f) ltc_##f##_f32x16
)"},
};

constexpr MathsForm kHostMaths[] = {{"f32", ""}};

constexpr Dialect kOpenCl{
    .name = "opencl",
    .prelude = R"(#pragma OPENCL FP_CONTRACT OFF
typedef uchar u8;
typedef char i8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef float f32;
#define FN static
#define GLOBAL __global
#define RESTRICT restrict
FN f32 f32_of_u32(u32 x) { return as_float(x); }
FN u32 u32_of_f32(f32 x) { return as_uint(x); }
)",
    .prelude_f64 = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
FN f64 f64_of_u64(u64 x) { return as_double(x); }
FN u64 u64_of_f64(f64 x) { return as_ulong(x); }
)",
    .suffixed = false,
    .open = "__kernel void ltc_kernel(",
    .body = ") {\n  const ix i0 = (ix)get_global_id(0);\n  if (i0 >= items) return;\n",
    .close = "}\n",
    .maths = kMaths,
    .maths_forms = kOpenClMaths,
    .vectors = true,
    .arguments_in_array = false,
};

constexpr Dialect kCuda{
    .name = "cuda",
    .prelude = R"(typedef unsigned char u8;
typedef signed char i8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define FN static __device__
#define GLOBAL
#define RESTRICT __restrict__
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#endif
FN f32 f32_of_u32(u32 x) { return __uint_as_float(x); }
FN u32 u32_of_f32(f32 x) { return __float_as_uint(x); }
FN f64 f64_of_u64(u64 x) { return __longlong_as_double((i64)x); }
FN u64 u64_of_f64(f64 x) { return (u64)__double_as_longlong(x); }
template <typename T, int N>
struct alignas(N * sizeof(T)) ltc_pack {
  T x[N];
};
// The value of the thread whose number differs in the bit `step`; called by all threads of a block of 256 or fewer.
template <typename T>
FN T ltc_partner(T x, i32 step) {
  if (step < 32) return (T)__shfl_xor_sync(0xffffffffu, x, step);
  __shared__ T all[256];
  all[threadIdx.x] = x;
  __syncthreads();
  const T other = all[(i32)threadIdx.x ^ step];
  __syncthreads();
  return other;
}
)",
    .prelude_f64 = "",
    .suffixed = true,
    .open = "extern \"C\" __global__ void ltc_kernel(",
    .body = ") {\n  const ix i0 = (ix)blockIdx.x * (ix)blockDim.x + (ix)threadIdx.x;\n  if (i0 >= items) return;\n",
    .close = "}\n",
    .vectors = false,
    .device_threads = 1 << 18,
    .arguments_in_array = false,
    .functions = tensor_core_functions,
};

constexpr Dialect kHost{
    .name = "host",
    .prelude = R"c(typedef unsigned char u8;
typedef signed char i8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long i64;
typedef unsigned long u64;
typedef float f32;
typedef double f64;
#define FN static inline
#define GLOBAL
#define RESTRICT
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define DECLARE(name) extern "C" f64 name(f64); extern "C" f32 name##f(f32);
#define DECLARE_2(name) extern "C" f64 name(f64, f64); extern "C" f32 name##f(f32, f32);
DECLARE(fabs) DECLARE(floor) DECLARE(ceil) DECLARE(trunc) DECLARE(rint) DECLARE(sqrt) DECLARE(exp) DECLARE(expm1) DECLARE(log)
DECLARE(log1p) DECLARE(sin) DECLARE(cos) DECLARE(tan) DECLARE(tanh) DECLARE(atan) DECLARE(erf) DECLARE(lgamma)
DECLARE_2(fmod) DECLARE_2(pow) DECLARE_2(atan2)
FN f32 f32_of_u32(u32 x) { f32 y; __builtin_memcpy(&y, &x, sizeof y); return y; }
FN u32 u32_of_f32(f32 x) { u32 y; __builtin_memcpy(&y, &x, sizeof y); return y; }
FN f64 f64_of_u64(u64 x) { f64 y; __builtin_memcpy(&y, &x, sizeof y); return y; }
FN u64 u64_of_f64(f64 x) { u64 y; __builtin_memcpy(&y, &x, sizeof y); return y; }
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#if defined(__FMA__) || defined(__aarch64__)
#define fmaf __builtin_fmaf
#define fma __builtin_fma
#else
#define fmaf(a, b, c) ((a) * (b) + (c))
#define fma(a, b, c) ((a) * (b) + (c))
#endif
)c",
    .prelude_f64 = "",
    .suffixed = true,
    .open = "extern \"C\" void ltc_kernel(void* const* args, i64 begin, i64 end) {\n",
    .body = "  (void)items;\n  INDEPENDENT\n  for (ix i0 = (ix)begin; i0 < (ix)end; ++i0) {\n",
    .close = "  }\n}\n",
    .maths = kMaths,
    .maths_forms = kHostMaths,
    .vectors = false,
    .arguments_in_array = true,
};

constexpr MathsForm kHostVectorMaths[] = {{"f32x16", R"(#define F float16
#define U uint16
#define BITS(x) ((uint16)(x))
#define FLOAT(u) ((float16)(u))
#define FUSED(a, b, c) __builtin_elementwise_fma(a, b, c)
#define NAME(f) ltc_##f##_f32x16
)"}};

constexpr Dialect kHostVectors{
    .name = "host vectors",
    .prelude = R"c(typedef int i32;
typedef long i64;
typedef float f32;
typedef f32 float16 __attribute__((ext_vector_type(16)));
typedef i32 int16 __attribute__((ext_vector_type(16)));
typedef unsigned int uint16 __attribute__((ext_vector_type(16)));
typedef float16 unaligned_float16 __attribute__((aligned(4)));
static inline float16 vload16(i32, const f32* p) { return *(const unaligned_float16*)p; }
static inline void vstore16(float16 v, i32, f32* p) { *(unaligned_float16*)p = v; }
#define GLOBAL
#define RESTRICT
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define fabs __builtin_elementwise_abs
#define floor __builtin_elementwise_floor
#define ceil __builtin_elementwise_ceil
#define trunc __builtin_elementwise_trunc
#define rint __builtin_elementwise_rint
#define sqrt __builtin_elementwise_sqrt
#if defined(__FMA__) || defined(__aarch64__)
#define fma __builtin_elementwise_fma
#else
#define fma(a, b, c) ((a) * (b) + (c))
#endif
)c",
    .prelude_f64 = "",
    .suffixed = false,
    .open = "extern \"C\" void ltc_kernel(void* const* args, i64 begin, i64 end) {\n",
    .body = "  for (ix i0 = (ix)begin; i0 < (ix)end; i0 += 16) {\n",
    .close = "  }\n}\n",
    .maths = kMaths,
    .maths_forms = kHostVectorMaths,
    .vectors = true,
    .arguments_in_array = true,
};

}  // namespace

const Dialect& opencl_dialect() { return kOpenCl; }
const Dialect& cuda_dialect() { return kCuda; }
const Dialect& host_dialect() { return kHost; }
const Dialect& host_vector_dialect() { return kHostVectors; }

}  // namespace ltc::kernels
