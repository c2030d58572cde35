// What tile kernels compute, element by element: one row per primitive, as ATen's own vectorised kernels have it. `a`, `b` and
// `c` are vectors of floats; truth is 1 and falsehood 0.
#pragma once
#include <cstdint>

// X(name, operands, result)
#define LTC_TILE_PRIMITIVES(X)                                  \
  X(copy, 1, a)                                                 \
  X(neg, 1, a.neg())                                            \
  X(abs, 1, a.abs())                                            \
  X(exp, 1, a.exp())                                            \
  X(expm1, 1, a.expm1())                                        \
  X(log, 1, a.log())                                            \
  X(log1p, 1, a.log1p())                                        \
  X(log2, 1, a.log2())                                          \
  X(sqrt, 1, a.sqrt())                                          \
  X(rsqrt, 1, a.rsqrt())                                        \
  X(reciprocal, 1, a.reciprocal())                              \
  X(sin, 1, a.sin())                                            \
  X(cos, 1, a.cos())                                            \
  X(tanh, 1, a.tanh())                                          \
  X(erf, 1, error_function(a))                                  \
  X(sigmoid, 1, (Vec(1.f) + (Vec(0.f) - a).exp()).reciprocal()) \
  X(floor, 1, a.floor())                                        \
  X(ceil, 1, a.ceil())                                          \
  X(round, 1, a.round())                                        \
  X(trunc, 1, a.trunc())                                        \
  X(add, 2, a + b)                                              \
  X(sub, 2, a - b)                                              \
  X(mul, 2, a* b)                                               \
  X(div, 2, a / b)                                              \
  X(maximum, 2, at::vec::maximum(a, b))                         \
  X(minimum, 2, at::vec::minimum(a, b))                         \
  X(eq, 2, a.eq(b))                                             \
  X(ne, 2, a.ne(b))                                             \
  X(lt, 2, a.lt(b))                                             \
  X(le, 2, a.le(b))                                             \
  X(gt, 2, a.gt(b))                                             \
  X(ge, 2, a.ge(b))                                             \
  X(pow, 2, power(a, b))                                        \
  X(fma, 3, at::vec::fmadd(a, b, c))                            \
  X(where, 3, Vec::blendv(c, b, a != Vec(0.f)))

namespace ltc::torchscript {

enum class Primitive : uint8_t {
#define X(name, operands, result) k_##name,
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

// The fastest that this machine has and ATEN_CPU_CAPABILITY allows.
const TileKernels& tile_kernels();

}  // namespace ltc::torchscript
