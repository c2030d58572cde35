/* Conversion between dtypes, and numbers that become elements. */
#include "minimal.h"

static float f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint32_t bits_of_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float from_bf16(uint16_t x) { return f32_of_bits((uint32_t)x << 16); }

/* Rounds half to even; a NaN stays one. */
static uint16_t to_bf16(float x) {
  const uint32_t bits = bits_of_f32(x);
  return x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t x) {
  const uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = x & 0x7fff;
  if (magnitude >= 0x7c00) return f32_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  const float value = f32_of_bits(magnitude << 13) * 0x1p112f; /* the exponent's bias grows from 15 to 127 */
  return f32_of_bits(bits_of_f32(value) | sign);
}

/* Rounds half to even, below the least normal number too: adding `magic` moves the last bit that is kept to the end of the float.
 */
static uint16_t to_f16(float x) {
  const uint32_t bits = bits_of_f32(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    const float magic = 0.5f;
    return (uint16_t)(sign | (bits_of_f32(f32_of_bits(magnitude) + magic) - bits_of_f32(magic)));
  }
  return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

/* NaN and values out of range become the least integer of 32 or 64 bits; smaller types take its low bits.
 */
static int64_t f64_to_i64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static int32_t f64_to_i32(double x) { return x > -0x1p31 - 1 && x < 0x1p31 ? (int32_t)x : INT32_MIN; }

#define STORE(R, expression)                                     \
  {                                                              \
    R* to = call->out[0]->data;                                  \
    for (int64_t i = 0; i < count; ++i) to[i] = (R)(expression); \
  }                                                              \
  break

/* Kernel cast_suffix, from type T whose elements read as C; WIDE and INT convert one to I64 and to smaller integers. */
#define CAST(T, suffix, C, READ, WIDE, INT)                          \
  static bool cast_##suffix(struct call* call) {                     \
    const T* from = call->in[0]->data;                               \
    const int64_t count = call->out[0]->count;                       \
    switch (call->out[0]->dtype) {                                   \
      case LTC_BOOL: STORE(uint8_t, READ(from[i]) != 0);             \
      case LTC_U8: STORE(uint8_t, INT(READ(from[i])));               \
      case LTC_I8: STORE(int8_t, INT(READ(from[i])));                \
      case LTC_I16: STORE(int16_t, INT(READ(from[i])));              \
      case LTC_I32: STORE(int32_t, INT(READ(from[i])));              \
      case LTC_I64: STORE(int64_t, WIDE(READ(from[i])));             \
      case LTC_F16: STORE(uint16_t, to_f16((float)READ(from[i])));   \
      case LTC_BF16: STORE(uint16_t, to_bf16((float)READ(from[i]))); \
      case LTC_F32: STORE(float, READ(from[i]));                     \
      case LTC_F64: STORE(double, READ(from[i]));                    \
    }                                                                \
    return true;                                                     \
  }
#define SAME(x) (x)
#define INT_CAST(T, suffix, ...) CAST(T, suffix, T, SAME, SAME, SAME)
#define FLOAT_CAST(T, suffix, ...) CAST(T, suffix, T, SAME, f64_to_i64, f64_to_i32)
FOR_INTS(INT_CAST, )
FOR_FLOATS(FLOAT_CAST, )
INT_CAST(uint8_t, b8)
CAST(uint16_t, f16, float, from_f16, f64_to_i64, f64_to_i32)
CAST(uint16_t, bf16, float, from_bf16, f64_to_i64, f64_to_i32)

static kernel* const casts[DTYPES] = {FLOATS(cast), INTS(cast), BOOLS(cast), [LTC_F16] = cast_f16, [LTC_BF16] = cast_bf16};

void read_number(const struct array* in, const struct attr* attr, ltc_dtype dtype, void* element) {
  union number none = {0};
  struct array from = {LTC_I64, 0, {0}, 1, attr->count ? attr->values : &none}, to = {dtype, 0, {0}, 1, element};
  if (attr->kind == LTC_ATTR_FLOAT) from.dtype = LTC_F64;
  const struct array* operands[] = {in ? in : &from};
  struct array* results[] = {&to};
  struct call call = {operands, 1, results, NULL, NULL}; /* casts do not fail */
  (void)casts[operands[0]->dtype](&call);
}

const struct op cast_ops[] = {
    {"aten::_to_copy", "N:A", {0}, {FLOATS(cast), INTS(cast), BOOLS(cast), [LTC_F16] = cast_f16, [LTC_BF16] = cast_bf16}},
    {0},
};
