/* The computing half of the test plugin: a graph of a handful of ops, run by naive loops over host memory.
 *
 * Ops: aten::add.Tensor, aten::mul.Tensor, aten::neg, aten::relu, aten::mm. Values: F32 and I64, rank up to 8; scalar params of
 * any type but complex. Operands broadcast, and each is converted to the type of the output. */
#ifndef LTC_TEST_PLAN_H
#define LTC_TEST_PLAN_H

#include "ltc/symbolic.h"

typedef struct test_plan test_plan;

/* Why `node` cannot be run, or NULL when it can. */
const char* test_plan_refuse(const ltc_graph* graph, const ltc_node* node);

/* Copies what it needs of a graph, none of whose nodes is refused, and of what is symbolic in it, where that is not NULL. One
 * reference; NULL when out of memory. */
test_plan* test_plan_create(const ltc_graph* graph, const ltc_symbolic_sizes* sizes);
size_t test_plan_symbol_count(const test_plan* plan);
/* The plan with these values of its symbols, one reference; itself where it has none. */
test_plan* test_plan_sized(test_plan* plan, const int64_t* symbols);
test_plan* test_plan_retain(test_plan* plan);
void test_plan_release(test_plan* plan);

size_t test_plan_input_count(const test_plan* plan);
size_t test_plan_scalar_count(const test_plan* plan);
size_t test_plan_output_count(const test_plan* plan);
uint64_t test_plan_input_bytes(const test_plan* plan, size_t input);
uint64_t test_plan_output_bytes(const test_plan* plan, size_t output);

/* False when out of memory. */
bool test_plan_run(const test_plan* plan, const void* const* inputs, const ltc_scalar* scalars, void* const* outputs);

/* "%3 = aten::neg(%2)", a line per node. False when the sink takes no more. */
bool test_plan_write(const test_plan* plan, const ltc_sink* sink);

/* The dtypes of buffers, a bit each: those of the ops, or with LTC_TEST_DTYPES more, all but some. */
#ifdef LTC_TEST_DTYPES
#define TEST_DTYPES ((UINT64_C(1) << (LTC_C128 + 1)) - 2 - (LTC_TEST_DTYPES))
#else
#define TEST_DTYPES (UINT64_C(1) << LTC_F32 | UINT64_C(1) << LTC_I64)
#endif
bool test_has_dtype(ltc_dtype dtype);

/* Bytes of a dense array of this type; 0 for a type that the plugin does not have. */
uint64_t test_element_bytes(ltc_dtype dtype);
uint64_t test_type_bytes(const ltc_type* type); /* UINT64_MAX: more than that */

#endif
