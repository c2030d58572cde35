/* Element-wise ops of two and three operands, with broadcasting. */
#include <tgmath.h>

#include "minimal.h"

/* Runs `body` over the result and the operands, each of which is broadcast to it. */
static bool elementwise(struct call* call, loop_body* body) {
  const struct array* out = call->out[0];
  struct loop_array arrays[4] = {{out->data, element_bytes(out->dtype), {0}}};
  dense_strides(out->rank, out->sizes, arrays[0].strides);
  for (size_t i = 0; i < call->in_count; ++i) {
    const struct array* in = call->in[i];
    struct loop_array* array = &arrays[i + 1];
    array->data = in->data;
    array->bytes = element_bytes(in->dtype);
    int64_t strides[MAX_RANK];
    dense_strides(in->rank, in->sizes, strides);
    const uint32_t lacking = out->rank - in->rank;
    for (uint32_t dim = 0; dim < in->rank; ++dim) array->strides[lacking + dim] = in->sizes[dim] == 1 ? 0 : strides[dim];
  }
  loop(out->rank, out->sizes, call->in_count + 1, arrays, body);
  return true;
}

/* Kernel op_suffix: results of type R, of operands of type T that are computed with as type C. */
#define BINARY(T, suffix, op, R, C, expression)                                              \
  static void op##_##suffix##_loop(int64_t count, char* const* at, const int64_t* strides) { \
    R* restrict to = (R*)at[0];                                                              \
    const T *a = (const T*)at[1], *b = (const T*)at[2];                                      \
    const int64_t step_a = strides[1], step_b = strides[2];                                  \
    if (step_a == 1 && step_b == 1) {                                                        \
      for (int64_t i = 0; i < count; ++i) {                                                  \
        const C x = a[i], y = b[i];                                                          \
        to[i] = (R)(expression);                                                             \
      }                                                                                      \
    } else {                                                                                 \
      for (int64_t i = 0; i < count; ++i) {                                                  \
        const C x = a[i * step_a], y = b[i * step_b];                                        \
        to[i] = (R)(expression);                                                             \
      }                                                                                      \
    }                                                                                        \
  }                                                                                          \
  static bool op##_##suffix(struct call* call) { return elementwise(call, op##_##suffix##_loop); }

#define FLOAT_BINARY(T, suffix, op, expression) BINARY(T, suffix, op, T, T, expression)
#define INT_BINARY(T, suffix, op, expression) BINARY(T, suffix, op, T, int64_t, expression)
#define COMPARISON(T, suffix, op, expression) BINARY(T, suffix, op, uint8_t, T, expression)
#define BOOL_BINARY(op, expression) BINARY(uint8_t, b8, op, uint8_t, uint8_t, expression)
#define BITS (8 * (int64_t)sizeof *to)

/* The sign of the divisor, as in Python. */
static int64_t int_remainder(int64_t x, int64_t y) {
  if (y == 0 || y == -1) return 0; /* the first has no answer, the second traps for the least integer */
  const int64_t rest = x % y;
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

#define FLOAT_REMAINDER(T, suffix)                               \
  static T remainder_of_##suffix(T x, T y) {                     \
    const T rest = fmod(x, y);                                   \
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest; \
  }
FLOAT_REMAINDER(float, f32)
FLOAT_REMAINDER(double, f64)

static uint64_t int_pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? UINT64_MAX : 1) : 0;
  uint64_t result = 1;
  for (uint64_t factor = (uint64_t)x; y > 0; y /= 2, factor *= factor) {
    if (y % 2) result *= factor;
  }
  return result;
}

FOR_FLOATS(FLOAT_BINARY, add, x + y)
FOR_FLOATS(FLOAT_BINARY, mul, x* y)
FOR_FLOATS(FLOAT_BINARY, div, x / y)
BINARY(float, f32, remainder, float, float, remainder_of_f32(x, y))
BINARY(double, f64, remainder, double, double, remainder_of_f64(x, y))
FOR_FLOATS(FLOAT_BINARY, fmod, fmod(x, y))
FOR_FLOATS(FLOAT_BINARY, pow, pow(x, y))
FOR_FLOATS(FLOAT_BINARY, maximum, x != x || x > y ? x : y)
FOR_FLOATS(FLOAT_BINARY, minimum, x != x || x < y ? x : y)
FOR_FLOATS(FLOAT_BINARY, atan2, atan2(x, y))

FOR_INTS(INT_BINARY, add, (uint64_t)x + (uint64_t)y)
FOR_INTS(INT_BINARY, mul, (uint64_t)x*(uint64_t)y)
FOR_INTS(INT_BINARY, remainder, int_remainder(x, y))
FOR_INTS(INT_BINARY, fmod, y == 0 || y == -1 ? 0 : x % y)
FOR_INTS(INT_BINARY, pow, int_pow(x, y))
FOR_INTS(INT_BINARY, maximum, x > y ? x : y)
FOR_INTS(INT_BINARY, minimum, x < y ? x : y)
FOR_INTS(INT_BINARY, bitwise_and, x& y)
FOR_INTS(INT_BINARY, bitwise_or, x | y)
FOR_INTS(INT_BINARY, bitwise_xor, x ^ y)
FOR_INTS(INT_BINARY, shift_left, y < 0 || y >= BITS ? 0 : (uint64_t)x << y)
FOR_INTS(INT_BINARY, shift_right, y < 0 || y >= BITS ? (x < 0 ? -1 : 0) : x >> y)
BOOL_BINARY(maximum, x | y)
BOOL_BINARY(minimum, x& y)
BOOL_BINARY(bitwise_and, x& y)
BOOL_BINARY(bitwise_or, x | y)
BOOL_BINARY(bitwise_xor, x ^ y)

FOR_FLOATS(COMPARISON, eq, x == y)
FOR_FLOATS(COMPARISON, lt, x < y)
FOR_FLOATS(COMPARISON, le, x <= y)
FOR_INTS(COMPARISON, eq, x == y)
FOR_INTS(COMPARISON, lt, x < y)
FOR_INTS(COMPARISON, le, x <= y)
BOOL_BINARY(eq, x == y)
BOOL_BINARY(lt, x < y)
BOOL_BINARY(le, x <= y)

#define WHERE(T)                                                                                                   \
  static void where_##T(int64_t count, char* const* at, const int64_t* strides) {                                  \
    const uint8_t* condition = (const uint8_t*)at[1];                                                              \
    const T *a = (const T*)at[2], *b = (const T*)at[3];                                                            \
    T* restrict to = (T*)at[0];                                                                                    \
    for (int64_t i = 0; i < count; ++i) to[i] = condition[i * strides[1]] ? a[i * strides[2]] : b[i * strides[3]]; \
  }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

static bool where(struct call* call) {
  const size_t bytes = element_bytes(call->out[0]->dtype);
  return elementwise(call, bytes == 1   ? where_uint8_t
                           : bytes == 2 ? where_uint16_t
                           : bytes == 4 ? where_uint32_t
                                        : where_uint64_t);
}

const struct op elementwise_ops[] = {
    {"aten::add.Tensor", "TT:T", {"alpha=1"}, {FLOATS(add), INTS(add)}},
    {"aten::mul.Tensor", "TT:T", {0}, {FLOATS(mul), INTS(mul)}},
    {"aten::div.Tensor", "TT:T", {0}, {FLOATS(div)}},
    {"aten::remainder.Tensor", "TT:T", {0}, {FLOATS(remainder), INTS(remainder)}},
    {"aten::fmod.Tensor", "TT:T", {0}, {FLOATS(fmod), INTS(fmod)}},
    {"aten::pow.Tensor_Tensor", "TT:T", {0}, {FLOATS(pow), INTS(pow)}},
    {"aten::maximum", "TT:T", {0}, {FLOATS(maximum), INTS(maximum), BOOLS(maximum)}},
    {"aten::minimum", "TT:T", {0}, {FLOATS(minimum), INTS(minimum), BOOLS(minimum)}},
    {"aten::atan2", "TT:T", {0}, {FLOATS(atan2)}},
    {"aten::bitwise_and.Tensor", "TT:T", {0}, {INTS(bitwise_and), BOOLS(bitwise_and)}},
    {"aten::bitwise_or.Tensor", "TT:T", {0}, {INTS(bitwise_or), BOOLS(bitwise_or)}},
    {"aten::bitwise_xor.Tensor", "TT:T", {0}, {INTS(bitwise_xor), BOOLS(bitwise_xor)}},
    {"aten::bitwise_left_shift.Tensor", "TT:T", {0}, {INTS(shift_left)}},
    {"aten::bitwise_right_shift.Tensor", "TT:T", {0}, {INTS(shift_right)}},
    {"aten::eq.Tensor", "TT:b", {0}, {FLOATS(eq), INTS(eq), BOOLS(eq)}},
    {"aten::lt.Tensor", "TT:b", {0}, {FLOATS(lt), INTS(lt), BOOLS(lt)}},
    {"aten::le.Tensor", "TT:b", {0}, {FLOATS(le), INTS(le), BOOLS(le)}},
    {"aten::where.self", "bTT:T", {0}, {ALL(where)}},
    {0},
};
