// Compiled once per instruction set, with CPU_CAPABILITY saying which. Nothing else may be in here: an inline function of another
// header, compiled for this set, could take the place of the same function elsewhere in the plugin.
#include <ATen/cpu/vec/vec.h>

#include "kernels/print/maths.h"
#include "torchscript/fusion/primitives.h"

namespace ltc::torchscript {
namespace {

using Vec = at::vec::Vectorized<float>;

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
  // An absent operand is read as the first, which has as many elements.
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

// As ATen's pow of a tensor and a number, which has the common exponents apart.
template <bool kA>
void pow_by_number(float* out, const float* const* in, int64_t count) {
  const auto each_is = [&](auto function) {
    run<kA, true, false, 2>(out, in, count, [&](const Vec& a, const Vec& b, const Vec&) { return function(a, b); });
  };
  const float exponent = *in[1];
  if (exponent == 0.f) return each_is([](const Vec&, const Vec&) { return Vec(1.f); });
  if (exponent == 1.f) return each_is([](const Vec& a, const Vec&) { return a; });
  if (exponent == 2.f) return each_is([](const Vec& a, const Vec&) { return a * a; });
  if (exponent == 0.5f) return each_is([](const Vec& a, const Vec&) { return a.sqrt(); });
  if (exponent == 3.f) return each_is([](const Vec& a, const Vec&) { return a * a * a; });
  if (exponent == -1.f) return each_is([](const Vec& a, const Vec&) { return a.reciprocal(); });
  if (exponent == -0.5f) return each_is([](const Vec& a, const Vec&) { return a.rsqrt(); });
  if (exponent == -2.f) return each_is([](const Vec& a, const Vec&) { return (a * a).reciprocal(); });
  each_is([](const Vec& a, const Vec& b) { return a.pow(b); });
}
template <>
void pow_kernel<false, true, false>(float* out, const float* const* in, int64_t count) {
  pow_by_number<false>(out, in, count);
}
template <>
void pow_kernel<true, true, false>(float* out, const float* const* in, int64_t count) {
  pow_by_number<true>(out, in, count);
}

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
