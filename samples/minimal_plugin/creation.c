/* Ops without tensor operands: constants, sequences, random numbers. */
#include "minimal.h"

static bool full(struct call* call) {
  const struct array* out = call->out[0];
  const size_t bytes = element_bytes(out->dtype);
  uint64_t element = 0;
  read_number(call->in[0], &call->attrs[0], out->dtype, &element);
  for (int64_t i = 0; i < out->count; ++i) memcpy((char*)out->data + i * (int64_t)bytes, &element, bytes);
  return true;
}

#define ARANGE(T, suffix, C, read)                                                      \
  static bool arange_##suffix(struct call* call) {                                      \
    T* to = call->out[0]->data;                                                         \
    C start, step;                                                                      \
    read_number(NULL, &call->attrs[0], read, &start);                                   \
    read_number(NULL, &call->attrs[1], read, &step);                                    \
    if (call->attrs[1].count == 0) step = 1;                                            \
    for (int64_t i = 0; i < call->out[0]->count; ++i) to[i] = (T)(start + (C)i * step); \
    return true;                                                                        \
  }
#define FLOAT_ARANGE(T, suffix, ...) ARANGE(T, suffix, double, LTC_F64)
#define INT_ARANGE(T, suffix, ...) ARANGE(T, suffix, uint64_t, LTC_I64)
FOR_FLOATS(FLOAT_ARANGE, )
FOR_INTS(INT_ARANGE, )

/* Block `counter` of Philox4x32-10. */
static void philox_block(uint64_t seed, uint64_t counter, uint32_t words[4]) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t x[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = (uint64_t)0xD2511F53u * x[0], b = (uint64_t)0xCD9E8D57u * x[2];
    const uint32_t next[4] = {(uint32_t)(b >> 32) ^ x[1] ^ key[0], (uint32_t)b, (uint32_t)(a >> 32) ^ x[3] ^ key[1], (uint32_t)a};
    memcpy(x, next, sizeof x);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  memcpy(words, x, sizeof x);
}

static uint64_t long_word(const uint32_t words[4], int64_t i) {
  return words[2 * (i % 2)] | (uint64_t)words[2 * (i % 2) + 1] << 32;
}

#define PHILOX(T, suffix, per_block, expression)                                                 \
  static bool philox_##suffix(struct call* call) {                                               \
    T* to = call->out[0]->data;                                                                  \
    uint64_t seed, offset;                                                                       \
    uint32_t words[4];                                                                           \
    read_number(call->in[0], &call->attrs[0], LTC_I64, &seed);                                   \
    read_number(call->in[1], &call->attrs[1], LTC_I64, &offset);                                 \
    for (int64_t i = 0; i < call->out[0]->count; ++i) {                                          \
      if (i % (per_block) == 0) philox_block(seed, offset + (uint64_t)(i / (per_block)), words); \
      to[i] = (T)(expression);                                                                   \
    }                                                                                            \
    return true;                                                                                 \
  }
PHILOX(int32_t, i32, 4, words[i % 4])
PHILOX(float, f32, 4, (float)(words[i % 4] >> 8) * 0x1p-24f)
PHILOX(int64_t, i64, 2, long_word(words, i))
PHILOX(double, f64, 2, (double)(long_word(words, i) >> 11) * 0x1p-53)

const struct op creation_ops[] = {
    {"aten::full", "s:T", {"fill_value"}, {ALL(full)}},
    {"aten::arange.start_step", ":T", {"start", "step"}, {FLOATS(arange), INTS(arange)}},
    {"ltc::philox", "ss:T", {"seed", "offset"}, {[LTC_I32] = philox_i32, [LTC_I64] = philox_i64, FLOATS(philox)}},
    {0},
};
