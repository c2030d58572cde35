/* Helpers of kernels: loops over strided arrays, on which element-wise ops and data movement rest, attributes and errors. */
#include <stdarg.h>
#include <stdio.h>

#include "minimal.h"

size_t element_bytes(ltc_dtype dtype) { /* by id: BOOL to F8_E8M0FNU */
  static const uint8_t bytes[] = {0, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 4, 1, 1, 1, 1, 1};
  return dtype < sizeof bytes ? bytes[dtype] : 0;
}

size_t array_bytes(const struct array* array) { return (size_t)array->count * element_bytes(array->dtype); }

bool fail(struct call* call, ltc_code code, const char* format, ...) {
  call->failure->code = code;
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(call->failure->message, MESSAGE_BYTES, format, arguments);
  va_end(arguments);
  return false;
}

int64_t attr_int(const struct attr* attr, int64_t otherwise) {
  if (attr->count == 0) return otherwise;
  return attr->kind == LTC_ATTR_FLOAT ? (int64_t)attr->values[0].f : attr->values[0].i;
}

void dense_strides(uint32_t rank, const int64_t* sizes, int64_t* strides) {
  int64_t stride = 1;
  for (uint32_t dim = rank; dim-- > 0; stride *= sizes[dim]) strides[dim] = stride;
}

/* Whether dims `dim` and `dim` + 1 are walked as one by every array. */
static bool mergeable(uint32_t dim, const int64_t* sizes, size_t array_count, const struct loop_array* arrays) {
  for (size_t a = 0; a < array_count; ++a) {
    if (arrays[a].strides[dim] != arrays[a].strides[dim + 1] * sizes[dim + 1]) return false;
  }
  return true;
}

/* Merges dims from the outermost inwards; returns how many are left. Dims of size 1 vanish. */
static uint32_t merge(uint32_t rank, int64_t* sizes, size_t array_count, struct loop_array* arrays) {
  uint32_t kept = 0;
  for (uint32_t dim = 0; dim < rank; ++dim) {
    if (sizes[dim] == 1) continue;
    sizes[kept] = sizes[dim];
    for (size_t a = 0; a < array_count; ++a) arrays[a].strides[kept] = arrays[a].strides[dim];
    ++kept;
    if (kept < 2 || !mergeable(kept - 2, sizes, array_count, arrays)) continue;
    sizes[kept - 2] *= sizes[kept - 1];
    for (size_t a = 0; a < array_count; ++a) arrays[a].strides[kept - 2] = arrays[a].strides[kept - 1];
    --kept;
  }
  if (kept > 0) return kept;
  sizes[0] = 1;
  for (size_t a = 0; a < array_count; ++a) arrays[a].strides[0] = 1;
  return 1;
}

void loop(uint32_t rank, const int64_t* given, size_t array_count, struct loop_array* arrays, loop_body* body) {
  int64_t sizes[MAX_RANK] = {1}, index[MAX_RANK] = {0}, strides[4];
  char* at[4];
  for (uint32_t dim = 0; dim < rank; ++dim) {
    if (given[dim] == 0) return;
    sizes[dim] = given[dim];
  }
  rank = merge(rank, sizes, array_count, arrays);
  for (size_t a = 0; a < array_count; ++a) {
    at[a] = arrays[a].data;
    strides[a] = arrays[a].strides[rank - 1];
  }
  while (true) {
    body(sizes[rank - 1], at, strides);
    uint32_t dim = rank - 1;
    while (dim-- > 0) {
      const bool wraps = ++index[dim] == sizes[dim];
      const int64_t steps = wraps ? 1 - sizes[dim] : 1;
      if (wraps) index[dim] = 0;
      for (size_t a = 0; a < array_count; ++a) at[a] += steps * arrays[a].strides[dim] * (int64_t)arrays[a].bytes;
      if (!wraps) break;
    }
    if (dim == UINT32_MAX) return;
  }
}

#define COPY(T)                                                                      \
  static void copy_##T(int64_t count, char* const* at, const int64_t* strides) {     \
    T* to = (T*)at[0];                                                               \
    const T* from = (const T*)at[1];                                                 \
    if (strides[0] == 1 && strides[1] == 1) {                                        \
      memcpy(to, from, (size_t)count * sizeof *to);                                  \
    } else {                                                                         \
      for (int64_t i = 0; i < count; ++i) to[i * strides[0]] = from[i * strides[1]]; \
    }                                                                                \
  }
COPY(uint8_t)
COPY(uint16_t)
COPY(uint32_t)
COPY(uint64_t)

void copy_strided(size_t bytes, uint32_t rank, const int64_t* sizes, void* to, const int64_t* to_strides, const void* from,
                  const int64_t* from_strides) {
  struct loop_array arrays[2] = {{to, bytes, {0}}, {(void*)from, bytes, {0}}};
  for (uint32_t dim = 0; dim < rank; ++dim) {
    arrays[0].strides[dim] = to_strides[dim];
    arrays[1].strides[dim] = from_strides[dim];
  }
  loop(rank, sizes, 2, arrays,
       bytes == 1   ? copy_uint8_t
       : bytes == 2 ? copy_uint16_t
       : bytes == 4 ? copy_uint32_t
                    : copy_uint64_t);
}
