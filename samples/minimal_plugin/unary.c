/* Element-wise ops of one operand. */
#include <tgmath.h>

#include "minimal.h"

/* Kernel op_suffix on elements of type T, computed with as type C. */
#define UNARY(T, suffix, op, C, expression)             \
  static bool op##_##suffix(struct call* call) {        \
    const T* from = call->in[0]->data;                  \
    T* to = call->out[0]->data;                         \
    for (int64_t i = 0; i < call->out[0]->count; ++i) { \
      const C x = from[i];                              \
      to[i] = (T)(expression);                          \
    }                                                   \
    return true;                                        \
  }
#define FLOAT_UNARY(T, suffix, op, expression) UNARY(T, suffix, op, T, expression)
#define INT_UNARY(T, suffix, op, expression) UNARY(T, suffix, op, int64_t, expression)

FOR_FLOATS(FLOAT_UNARY, neg, -x)
FOR_FLOATS(FLOAT_UNARY, abs, fabs(x))
FOR_FLOATS(FLOAT_UNARY, sign, (x > 0) - (x < 0))
FOR_FLOATS(FLOAT_UNARY, floor, floor(x))
FOR_FLOATS(FLOAT_UNARY, ceil, ceil(x))
FOR_FLOATS(FLOAT_UNARY, trunc, trunc(x))
FOR_FLOATS(FLOAT_UNARY, round, nearbyint(x))
FOR_FLOATS(FLOAT_UNARY, exp, exp(x))
FOR_FLOATS(FLOAT_UNARY, expm1, expm1(x))
FOR_FLOATS(FLOAT_UNARY, log, log(x))
FOR_FLOATS(FLOAT_UNARY, log1p, log1p(x))
FOR_FLOATS(FLOAT_UNARY, sqrt, sqrt(x))
FOR_FLOATS(FLOAT_UNARY, sin, sin(x))
FOR_FLOATS(FLOAT_UNARY, cos, cos(x))
FOR_FLOATS(FLOAT_UNARY, tan, tan(x))
FOR_FLOATS(FLOAT_UNARY, tanh, tanh(x))
FOR_FLOATS(FLOAT_UNARY, atan, atan(x))
FOR_FLOATS(FLOAT_UNARY, erf, erf(x))
FOR_FLOATS(FLOAT_UNARY, lgamma, lgamma(x))
FOR_INTS(INT_UNARY, neg, 0 - (uint64_t)x) /* wraps, as all arithmetic of integers does */
FOR_INTS(INT_UNARY, abs, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
FOR_INTS(INT_UNARY, sign, (x > 0) - (x < 0))
FOR_INTS(INT_UNARY, bitwise_not, ~x)
UNARY(uint8_t, b8, bitwise_not, uint8_t, !x)

const struct op unary_ops[] = {
    {"aten::neg", "T:T", {0}, {FLOATS(neg), INTS(neg)}},
    {"aten::abs", "T:T", {0}, {FLOATS(abs), INTS(abs)}},
    {"aten::sign", "T:T", {0}, {FLOATS(sign), INTS(sign)}},
    {"aten::floor", "T:T", {0}, {FLOATS(floor)}},
    {"aten::ceil", "T:T", {0}, {FLOATS(ceil)}},
    {"aten::trunc", "T:T", {0}, {FLOATS(trunc)}},
    {"aten::round", "T:T", {0}, {FLOATS(round)}},
    {"aten::exp", "T:T", {0}, {FLOATS(exp)}},
    {"aten::expm1", "T:T", {0}, {FLOATS(expm1)}},
    {"aten::log", "T:T", {0}, {FLOATS(log)}},
    {"aten::log1p", "T:T", {0}, {FLOATS(log1p)}},
    {"aten::sqrt", "T:T", {0}, {FLOATS(sqrt)}},
    {"aten::sin", "T:T", {0}, {FLOATS(sin)}},
    {"aten::cos", "T:T", {0}, {FLOATS(cos)}},
    {"aten::tan", "T:T", {0}, {FLOATS(tan)}},
    {"aten::tanh", "T:T", {0}, {FLOATS(tanh)}},
    {"aten::atan", "T:T", {0}, {FLOATS(atan)}},
    {"aten::erf", "T:T", {0}, {FLOATS(erf)}},
    {"aten::lgamma", "T:T", {0}, {FLOATS(lgamma)}},
    {"aten::bitwise_not", "T:T", {0}, {INTS(bitwise_not), BOOLS(bitwise_not)}},
    {0},
};
