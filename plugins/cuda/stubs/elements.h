/* For libraries of tests that compute on the host: elements of F32, F64, F16 and BF16 as numbers. */
#pragma once
#include <stdint.h>
#include <string.h>

/* As in cuBLASLt and cuDNN. Their numbers of BF16 differ, so each other one is BF16 here. */
enum { kF32 = 0, kF64 = 1, kF16 = 2 };

static inline double load_element(const void* memory, int type, int64_t at) {
  uint32_t bits;
  float value;
  if (type == kF32) return ((const float*)memory)[at];
  if (type == kF64) return ((const double*)memory)[at];
  if (type == kF16) return (double)((const _Float16*)memory)[at];
  bits = (uint32_t)((const uint16_t*)memory)[at] << 16;
  memcpy(&value, &bits, sizeof bits);
  return value;
}
static inline void store_element(void* memory, int type, int64_t at, double wide) {
  const float value = (float)wide;
  uint32_t bits;
  if (type == kF32) {
    ((float*)memory)[at] = value;
  } else if (type == kF64) {
    ((double*)memory)[at] = wide;
  } else if (type == kF16) {
    ((_Float16*)memory)[at] = (_Float16)value;
  } else {
    memcpy(&bits, &value, sizeof bits);
    ((uint16_t*)memory)[at] = (uint16_t)(value == value ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fff);
  }
}
/* TF32 keeps 10 bits behind the point. */
static inline double to_tf32(double wide) {
  float value = (float)wide;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits &= 0xffffe000u;
  memcpy(&value, &bits, sizeof bits);
  return value;
}
/* Whether a factor, which is F64 or F32, is this number. */
static inline int is_number(int is_f64, const void* factor, double number) {
  return (is_f64 ? *(const double*)factor : *(const float*)factor) == number;
}
