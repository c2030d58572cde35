// Compiled once per instruction set, with CPU_CAPABILITY saying which. Nothing else may be in here: an inline function of another
// header, compiled for this set, could take the place of the same function elsewhere in the plugin.
#include <ATen/cpu/vec/vec.h>

#include "kernels/maths.h"
#include "primitives.h"

namespace ltc::torchscript {
namespace {

using Vec = at::vec::Vectorized<float>;

// As ATen's pow of a tensor and a number, which has the common exponents apart.
inline Vec power(const Vec& base, const Vec& exponent) {
  float exponents[Vec::size()];
  exponent.store(exponents);
  bool uniform = true;
  for (const float one : exponents) uniform &= one == exponents[0];
  if (uniform) {
    const float first = exponents[0];
    if (first == 0.f) return Vec(1.f);
    if (first == 1.f) return base;
    if (first == 2.f) return base * base;
    if (first == 0.5f) return base.sqrt();
    if (first == 3.f) return base * base * base;
    if (first == -1.f) return base.reciprocal();
    if (first == -0.5f) return base.rsqrt();
    if (first == -2.f) return (base * base).reciprocal();
  }
  return base.pow(exponent);
}

// A function of maths.h.
inline Vec each(float (*function)(float), const Vec& a) {
  float lanes[Vec::size()];
  a.store(lanes);
  for (float& lane : lanes) lane = function(lane);
  return Vec::loadu(lanes);
}

template <bool kScalar>
struct Operand {
  Operand(const float* data) : data(data), value(kScalar ? *data : 0.f) {}
  Vec at(int64_t i) const { return kScalar ? value : Vec::loadu(data + i); }
  Vec at(int64_t i, int64_t count) const { return kScalar ? value : Vec::loadu(data + i, count); }
  const float* data;
  const Vec value;
};

template <bool kA, bool kB, bool kC, int kOperands, typename Function>
inline void run(float* out, const float* const* in, int64_t count, Function function) {
  // What there is not is the first, of which as many elements may be read.
  const Operand<kA> a(in[0]);
  const Operand<(kOperands > 1 ? kB : kA)> b(in[kOperands > 1 ? 1 : 0]);
  const Operand<(kOperands > 2 ? kC : kA)> c(in[kOperands > 2 ? 2 : 0]);
  int64_t i = 0;
  for (; i + Vec::size() <= count; i += Vec::size()) function(a.at(i), b.at(i), c.at(i)).store(out + i);
  const int64_t rest = count - i;
  if (rest > 0) function(a.at(i, rest), b.at(i, rest), c.at(i, rest)).store(out + i, static_cast<int>(rest));
}

#define X(name, operands, result, formula)                                                                         \
  template <bool kA, bool kB, bool kC>                                                                             \
  void name##_kernel(float* out, const float* const* in, int64_t count) {                                          \
    run<kA, kB, kC, operands>(                                                                                     \
        out, in, count,                                                                                            \
        [](const Vec& a, [[maybe_unused]] const Vec& b, [[maybe_unused]] const Vec& c) -> Vec { return result; }); \
  }
LTC_TILE_PRIMITIVES(X)
#undef X

#define VARIANTS(name)                                                                                       \
  {name##_kernel<false, false, false>, name##_kernel<true, false, false>, name##_kernel<false, true, false>, \
   name##_kernel<true, true, false>,   name##_kernel<false, false, true>, name##_kernel<true, false, true>,  \
   name##_kernel<false, true, true>,   name##_kernel<true, true, true>},

}  // namespace

#define NAME_OF(capability) tile_kernels_##capability
#define NAME(capability) NAME_OF(capability)

extern const TileKernels NAME(CPU_CAPABILITY);
const TileKernels NAME(CPU_CAPABILITY) = {{
#define X(name, operands, result, formula) VARIANTS(name)
    LTC_TILE_PRIMITIVES(X)
#undef X
}};

}  // namespace ltc::torchscript
