/* The interface between the files of the minimal plugin: arrays, the table of ops, and the queue. */
#ifndef MINIMAL_H
#define MINIMAL_H

#include <stdlib.h>
#include <string.h>

#include "ltc/collective.h"
#include "ltc/plugin.h"

#define MAX_RANK 16
#define MAX_ATTRS 6
#define MESSAGE_BYTES 120
#define DTYPES (LTC_F64 + 1) /* BOOL to F64 are computed with; others are only held */

/* Why work failed; code 0: it did not. */
struct failure {
  ltc_code code;
  uint32_t node; /* of the graph, or LTC_NONE: the host names the op and the user's line */
  char message[MESSAGE_BYTES];
  uint8_t*
      good; /* of a run, per output whether it is right all the same; may be NULL: none is. To be freed by who has the failure */
};

/* A dense row-major array. */
struct array {
  ltc_dtype dtype;
  uint32_t rank;
  int64_t sizes[MAX_RANK];
  int64_t count;
  void* data;
};

/* An attribute; kind 0 where the node has none. A text is its first 8 bytes, as a number. */
struct attr {
  ltc_attr_kind kind;
  size_t count;
  union number {
    int64_t i;
    double f;
  } * values;
};

/* One op to be computed. Operands and results that are absent are NULL. */
struct call {
  const struct array* const* in;
  size_t in_count;
  struct array* const* out;
  const struct attr* attrs; /* in the order of the op's row */
  struct failure* failure;  /* out: why the kernel failed */
};
typedef bool kernel(struct call* call);

/* One row of the table of ops. A node that does not match it is not claimed.
 *
 * types  operands, a colon, results. T: all the same, and their dtype picks the kernel. N: a T that may be a number passed by
 * value. b: BOOL. i: I64. A: any that we compute with. B: any that we hold. s: a number by value, absent where it is an
 * attribute. -: absent. t: a token of a collective, or absent.
 *        +: as many Ts as there are.
 * attrs  their names. With "=1" behind it one must have that value.
 * takes  whether the node has the operands of the op, and this plugin may compute it; NULL: the operands are those of opset.h. */
struct op {
  const char* name;
  const char* types;
  const char* attrs[MAX_ATTRS];
  kernel* kernels[DTYPES];
  bool (*takes)(const ltc_node* node);
};

/* Tables of further ops, each ended by a row without name. */
extern const struct op unary_ops[], elementwise_ops[], cast_ops[], movement_ops[], creation_ops[], reduction_ops[], index_ops[],
    matrix_ops[], collective_ops[];

/* X(type, suffix, ...) for each type of a kind, and the kernels of that name as entries of a row. */
#define FOR_FLOATS(X, ...) X(float, f32, __VA_ARGS__) X(double, f64, __VA_ARGS__)
#define FOR_INTS(X, ...)      \
  X(uint8_t, u8, __VA_ARGS__) \
  X(int8_t, i8, __VA_ARGS__) X(int16_t, i16, __VA_ARGS__) X(int32_t, i32, __VA_ARGS__) X(int64_t, i64, __VA_ARGS__)
#define FLOATS(op) [LTC_F32] = op##_f32, [LTC_F64] = op##_f64
#define INTS(op) [LTC_U8] = op##_u8, [LTC_I8] = op##_i8, [LTC_I16] = op##_i16, [LTC_I32] = op##_i32, [LTC_I64] = op##_i64
#define BOOLS(op) [LTC_BOOL] = op##_b8
#define ALL(op)                                                                                                  \
  [LTC_BOOL] = op, [LTC_U8] = op, [LTC_I8] = op, [LTC_I16] = op, [LTC_I32] = op, [LTC_I64] = op, [LTC_F16] = op, \
  [LTC_BF16] = op, [LTC_F32] = op, [LTC_F64] = op

/* The functions that this plugin has for groups of processes: collectives.c. */
extern const ltc_collectives collectives;
extern const ltc_extension profile_and_more; /* the extensions behind it in the plugin's list */
const ltc_host_api* host_of(const ltc_device* device);

size_t array_bytes(const struct array* array);
size_t element_bytes(ltc_dtype dtype); /* 0 for what is no dtype of ours */
/* False, for `return fail(...)`. The code decides what the program can catch: OUT_OF_RANGE is Python's IndexError. */
bool fail(struct call* call, ltc_code code, const char* format, ...);
int64_t attr_int(const struct attr* attr, int64_t otherwise);

/* Element strides of a dense array of these sizes. */
void dense_strides(uint32_t rank, const int64_t* sizes, int64_t* strides);

/* Loops over up to 4 arrays of the same sizes: `body` gets the innermost dim, a pointer and a stride in elements per array.
 * Neighbouring dims that can be walked as one are. */
typedef void loop_body(int64_t count, char* const* at, const int64_t* strides);
struct loop_array {
  void* data;
  size_t bytes; /* of an element */
  int64_t strides[MAX_RANK];
};
void loop(uint32_t rank, const int64_t* sizes, size_t array_count, struct loop_array* arrays, loop_body* body);

/* Copies elements of `bytes` between two geometries of the same sizes, in row-major order. */
void copy_strided(size_t bytes, uint32_t rank, const int64_t* sizes, void* to, const int64_t* to_strides, const void* from,
                  const int64_t* from_strides);

/* Writes the number of operand `in`, or else of `attr`, as an element of dtype. */
void read_number(const struct array* in, const struct attr* attr, ltc_dtype dtype, void* element);

#endif
