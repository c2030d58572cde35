// The primitives of tiles, element by element. A row has an expression over vectors of floats `a`, `b` and `c` for the kernels
// that are there from the start (tile_kernels.cpp), and a formula of plugins/kernels (op_table.h) for compiled ones. Both give
// the same bits. Truth is 1 and falsehood 0. Primitives without a formula are not compiled: powers, sines and base-2 logarithms
// have ATen's bits, which come from the Sleef inside libtorch.
#pragma once
#include <cstdint>

// X(name, operands, result, formula)
#define LTC_TILE_PRIMITIVES(X)                                           \
  X(copy, 1, a, "$0")                                                    \
  X(neg, 1, a.neg(), "-$0")                                              \
  X(abs, 1, a.abs(), "@fabs($0)")                                        \
  X(exp, 1, each(ltc_exp_f32, a), "@exp($0)")                            \
  X(expm1, 1, each(ltc_expm1_f32, a), "@expm1($0)")                      \
  X(log, 1, each(ltc_log_f32, a), "@log($0)")                            \
  X(log1p, 1, each(ltc_log1p_f32, a), "@log1p($0)")                      \
  X(log2, 1, a.log2(), "")                                               \
  X(sqrt, 1, a.sqrt(), "@sqrt($0)")                                      \
  X(rsqrt, 1, a.rsqrt(), "1 / @sqrt($0)")                                \
  X(reciprocal, 1, a.reciprocal(), "1 / $0")                             \
  X(sin, 1, a.sin(), "")                                                 \
  X(cos, 1, a.cos(), "")                                                 \
  X(tanh, 1, each(ltc_tanh_f32, a), "@tanh($0)")                         \
  X(erf, 1, each(ltc_erf_f32, a), "@erf($0)")                            \
  X(sigmoid, 1, each(ltc_sigmoid_f32, a), "@sigmoid($0)")                \
  X(floor, 1, a.floor(), "@floor($0)")                                   \
  X(ceil, 1, a.ceil(), "@ceil($0)")                                      \
  X(round, 1, a.round(), "@rint($0)")                                    \
  X(trunc, 1, a.trunc(), "@trunc($0)")                                   \
  X(add, 2, a + b, "$0 + $1")                                            \
  X(sub, 2, a - b, "$0 - $1")                                            \
  X(mul, 2, a* b, "$0 * $1")                                             \
  X(div, 2, a / b, "$0 / $1")                                            \
  X(maximum, 2, at::vec::maximum(a, b), "$0 != $0 || $0 > $1 ? $0 : $1") \
  X(minimum, 2, at::vec::minimum(a, b), "$0 != $0 || $0 < $1 ? $0 : $1") \
  X(eq, 2, a.eq(b), "$0 == $1 ? (T)1 : (T)0")                            \
  X(ne, 2, a.ne(b), "$0 != $1 ? (T)1 : (T)0")                            \
  X(lt, 2, a.lt(b), "$0 < $1 ? (T)1 : (T)0")                             \
  X(le, 2, a.le(b), "$0 <= $1 ? (T)1 : (T)0")                            \
  X(gt, 2, a.gt(b), "$0 > $1 ? (T)1 : (T)0")                             \
  X(ge, 2, a.ge(b), "$0 >= $1 ? (T)1 : (T)0")                            \
  X(pow, 2, a.pow(b), "")                                                \
  X(fma, 3, at::vec::fmadd(a, b, c), "@fma($0, $1, $2)")                 \
  X(where, 3, Vec::blendv(c, b, a != Vec(0.f)), "$0 != 0 ? $1 : $2")

namespace ltc::torchscript {

enum class Primitive : uint8_t {
#define X(name, operands, result, formula) k_##name,
  LTC_TILE_PRIMITIVES(X)
#undef X
      kCount
};

inline constexpr int kPrimitiveCount = static_cast<int>(Primitive::kCount);
inline constexpr int kMostOperands = 3;

// Computes `count` elements. An operand is one tensor element after the other or, where the kernel is for a scalar, one element.
using TileKernel = void (*)(float* out, const float* const* in, int64_t count);

// By primitive, then by which operands are scalars: bit i for operand i.
struct TileKernels {
  TileKernel of[kPrimitiveCount][1 << kMostOperands];
};

// The kernels of cpu_kernels/ use from now on what ATen does: the largest that this machine has and ATEN_CPU_CAPABILITY allows.
void use_atens_instruction_set();
// For the same.
const TileKernels& tile_kernels();
// The machine that these are for, as ltc_hc_describe takes it.
const char* tile_cpu();

}  // namespace ltc::torchscript
