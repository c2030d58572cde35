#define _POSIX_C_SOURCE 200809L
#include "core/testing/test_plan.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ltc/entry.h"

#define MAX_RANK 8

enum op { ADD, MUL, NEG, RELU, MM, OP_COUNT };

static const struct op_row {
  const char* name;
  const char* operands; /* see ltc_node_matches */
  size_t tensor_count;
} ops[OP_COUNT] = {{"aten::add.Tensor", "T:self T:other", 2},
                   {"aten::mul.Tensor", "T:self T:other", 2},
                   {"aten::neg", "T:self", 1},
                   {"aten::relu", "T:self", 1},
                   {"aten::mm", "T:self T:mat2", 2}};

struct value {
  ltc_dtype dtype;
  uint32_t rank;
  int64_t sizes[MAX_RANK];
  int64_t count;
};

struct step {
  enum op op;
  uint32_t inputs[2];
  uint32_t output;
  uint32_t alpha_value; /* add: a scalar param, or LTC_NONE: alpha */
  double alpha;
};

struct test_plan {
  int references; /* under `lock` */
  size_t value_count, step_count, input_count, scalar_count, output_count;
  struct value* values;
  struct step* steps;
  uint32_t *inputs, *scalars, *outputs; /* value ids */
  size_t symbol_count, number_count;
  ltc_symbolic_number* numbers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool test_has_dtype(ltc_dtype dtype) { return dtype < 64 && (TEST_DTYPES >> dtype & 1) != 0; }

uint64_t test_element_bytes(ltc_dtype dtype) {
  switch (test_has_dtype(dtype) ? dtype : 0) {
    case LTC_BOOL:
    case LTC_U8:
    case LTC_I8: return 1;
    case LTC_I16:
    case LTC_F16:
    case LTC_BF16: return 2;
    case LTC_I32:
    case LTC_F32: return 4;
    case LTC_I64:
    case LTC_F64:
    case LTC_C64: return 8;
    case LTC_C128: return 16;
    default: return 0;
  }
}

uint64_t test_type_bytes(const ltc_type* type) {
  uint64_t bytes = test_element_bytes(type->dtype);
  for (uint32_t i = 0; i < type->rank; ++i) {
    const uint64_t size = (uint64_t)type->sizes[i];
    if (size > 0 && bytes > (UINT64_MAX - 1) / size) return UINT64_MAX;
    bytes *= size;
  }
  return bytes;
}

/* ---- reading a graph ---- */

#ifdef LTC_TEST_ANY_OPERANDS
#define MATCHES(node, op) ((node)->input_count >= ops[op].tensor_count)
#define KNOWN_INPUTS(node, op) ops[op].tensor_count
#else
/* The graphs of the core's own tests leave alpha out where it is 1. */
#define MATCHES(node, op) \
  (ltc_node_matches(node, ops[op].operands) || (op == ADD && ltc_node_matches(node, "T:self T:other S:alpha")))
#define KNOWN_INPUTS(node, op) (node)->input_count
#endif

static enum op find_op(ltc_string name) {
  int op = 0;
  while (op < OP_COUNT && (strlen(ops[op].name) != name.size || memcmp(ops[op].name, name.data, name.size) != 0)) ++op;
  return (enum op)op;
}

static bool is_scalar_param(const ltc_graph* graph, uint32_t value) {
  for (size_t i = 0; i < graph->param_count; ++i) {
    if (graph->params[i]->value == value) return (graph->params[i]->flags & LTC_PARAM_SCALAR) != 0;
  }
  return false;
}

static const char* refuse_value(const ltc_graph* graph, uint32_t value) {
  if (value == LTC_NONE) return "an absent operand";
  const ltc_type* type = graph->types[value];
  if (is_scalar_param(graph, value)) return type->dtype == LTC_C128 ? "a complex scalar" : NULL;
  if (type->dtype != LTC_F32 && type->dtype != LTC_I64) return "a dtype other than F32 and I64";
  return type->rank > MAX_RANK ? "a rank above 8" : NULL;
}

const char* test_plan_refuse(const ltc_graph* graph, const ltc_node* node) {
  const enum op op = find_op(node->name);
  if (op == OP_COUNT) return "not an op of this plugin";
  const ltc_attr* alpha = ltc_find_attr(node, "alpha", strlen("alpha"), "");
  if (!MATCHES(node, op)) return "inputs or attributes other than those of the op";
  if (node->output_count != 1 || node->outputs[0] == LTC_NONE) return "a wrong number of outputs";
  if (alpha && alpha->kind != LTC_ATTR_INT && alpha->kind != LTC_ATTR_FLOAT) return "alpha is no real number";
  for (size_t i = 0; i < KNOWN_INPUTS(node, op); ++i) {
    const char* why = refuse_value(graph, node->inputs[i]);
    if (why) return why;
  }
  return refuse_value(graph, node->outputs[0]);
}

static struct value read_value(const ltc_type* type) {
  struct value value = {type->dtype, type->rank, {0}, 1};
  for (uint32_t i = 0; i < type->rank && i < MAX_RANK; ++i) {
    value.sizes[i] = type->sizes[i];
    value.count *= type->sizes[i];
  }
  return value;
}

static struct step read_step(const ltc_node* node) {
  struct step step = {find_op(node->name), {LTC_NONE, LTC_NONE}, node->outputs[0], LTC_NONE, 1.0};
  for (size_t i = 0; i < ops[step.op].tensor_count; ++i) step.inputs[i] = node->inputs[i];
  const ltc_attr* alpha = ltc_find_attr(node, "alpha", strlen("alpha"), "");
  if (alpha) step.alpha = alpha->kind == LTC_ATTR_FLOAT ? alpha->value.floats[0] : (double)alpha->value.ints[0];
  if (!alpha && node->input_count == 3) step.alpha_value = node->inputs[2];
  return step;
}

static test_plan* allocate(size_t values, size_t steps, size_t params, size_t outputs, size_t numbers) {
  test_plan* plan = calloc(1, sizeof *plan);
  if (!plan) return NULL;
  plan->references = 1;
  plan->values = calloc(values + 1, sizeof *plan->values);
  plan->steps = calloc(steps + 1, sizeof *plan->steps);
  plan->inputs = calloc(params + 1, sizeof *plan->inputs);
  plan->scalars = calloc(params + 1, sizeof *plan->scalars);
  plan->outputs = calloc(outputs + 1, sizeof *plan->outputs);
  plan->numbers = calloc(numbers + 1, sizeof *plan->numbers);
  if (plan->values && plan->steps && plan->inputs && plan->scalars && plan->outputs && plan->numbers) return plan;
  test_plan_release(plan);
  return NULL;
}

test_plan* test_plan_create(const ltc_graph* graph, const ltc_symbolic_sizes* sizes) {
  const size_t number_count = sizes ? sizes->number_count : 0;
  test_plan* plan = allocate(graph->value_count, graph->node_count, graph->param_count, graph->output_count, number_count);
  if (!plan) return NULL;
  plan->symbol_count = sizes ? sizes->symbol_count : 0;
  plan->number_count = number_count;
  if (number_count) memcpy(plan->numbers, sizes->numbers, number_count * sizeof *plan->numbers);
  plan->value_count = graph->value_count;
  plan->step_count = graph->node_count;
  plan->output_count = graph->output_count;
  for (size_t i = 0; i < graph->value_count; ++i) plan->values[i] = read_value(graph->types[i]);
  for (size_t i = 0; i < graph->node_count; ++i) plan->steps[i] = read_step(graph->nodes[i]);
  for (size_t i = 0; i < graph->output_count; ++i) plan->outputs[i] = graph->outputs[i];
  for (size_t i = 0; i < graph->param_count; ++i) {
    const ltc_param* param = graph->params[i];
    if (param->flags & LTC_PARAM_SCALAR) {
      plan->scalars[plan->scalar_count++] = param->value;
    } else {
      plan->inputs[plan->input_count++] = param->value;
    }
  }
  return plan;
}

size_t test_plan_symbol_count(const test_plan* plan) { return plan->symbol_count; }

test_plan* test_plan_sized(test_plan* plan, const int64_t* symbols) {
  if (plan->symbol_count == 0) return test_plan_retain(plan);
  const size_t params = plan->input_count + plan->scalar_count;
  test_plan* sized = allocate(plan->value_count, plan->step_count, params, plan->output_count, 0);
  if (!sized) return NULL;
  sized->value_count = plan->value_count;
  sized->step_count = plan->step_count;
  sized->input_count = plan->input_count;
  sized->scalar_count = plan->scalar_count;
  sized->output_count = plan->output_count;
  memcpy(sized->values, plan->values, plan->value_count * sizeof *plan->values);
  memcpy(sized->steps, plan->steps, plan->step_count * sizeof *plan->steps);
  memcpy(sized->inputs, plan->inputs, plan->input_count * sizeof *plan->inputs);
  memcpy(sized->scalars, plan->scalars, plan->scalar_count * sizeof *plan->scalars);
  memcpy(sized->outputs, plan->outputs, plan->output_count * sizeof *plan->outputs);
  for (size_t i = 0; i < plan->number_count; ++i) {
    const ltc_symbolic_number* number = &plan->numbers[i];
    const int64_t value = number->scale * symbols[number->symbol] + number->offset;
    if (number->attr != LTC_NONE) {
      sized->steps[number->owner].alpha = (double)value; /* no op has another number */
    } else {
      sized->values[number->owner].sizes[number->element] = value;
    }
  }
  for (size_t i = 0; i < sized->value_count; ++i) {
    struct value* value = &sized->values[i];
    value->count = 1;
    for (uint32_t dim = 0; dim < value->rank; ++dim) value->count *= value->sizes[dim];
  }
  return sized;
}

test_plan* test_plan_retain(test_plan* plan) {
  pthread_mutex_lock(&lock);
  ++plan->references;
  pthread_mutex_unlock(&lock);
  return plan;
}

void test_plan_release(test_plan* plan) {
  pthread_mutex_lock(&lock);
  const int left = --plan->references;
  pthread_mutex_unlock(&lock);
  if (left > 0) return;
  free(plan->values);
  free(plan->steps);
  free(plan->inputs);
  free(plan->scalars);
  free(plan->outputs);
  free(plan->numbers);
  free(plan);
}

size_t test_plan_input_count(const test_plan* plan) { return plan->input_count; }
size_t test_plan_scalar_count(const test_plan* plan) { return plan->scalar_count; }
size_t test_plan_output_count(const test_plan* plan) { return plan->output_count; }

static uint64_t value_bytes(const struct value* value) { return test_element_bytes(value->dtype) * (uint64_t)value->count; }

uint64_t test_plan_input_bytes(const test_plan* plan, size_t input) { return value_bytes(&plan->values[plan->inputs[input]]); }
uint64_t test_plan_output_bytes(const test_plan* plan, size_t output) {
  return value_bytes(&plan->values[plan->outputs[output]]);
}

/* ---- running it ---- */

/* A value and its elements; a scalar param's point at its ltc_scalar. */
struct operand {
  const struct value* value;
  const void* data;
};

static double as_float(struct operand x, int64_t i) {
  if (x.value->dtype == LTC_F32) return (double)((const float*)x.data)[i];
  if (x.value->dtype == LTC_F64) return ((const double*)x.data)[i];
  return (double)((const int64_t*)x.data)[i];
}

static int64_t as_int(struct operand x, int64_t i) {
  const bool is_float = x.value->dtype == LTC_F32 || x.value->dtype == LTC_F64;
  return is_float ? (int64_t)as_float(x, i) : ((const int64_t*)x.data)[i];
}

/* Integer arithmetic wraps, as ATen's does. */
static int64_t wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* The element of an operand that broadcasts to element `index` of the output. */
static int64_t broadcast(const struct value* operand, const struct value* output, int64_t index) {
  int64_t result = 0, stride = 1;
  for (uint32_t back = 1; back <= operand->rank; ++back) {
    const int64_t output_size = output->sizes[output->rank - back];
    const int64_t size = operand->sizes[operand->rank - back];
    if (size != 1) result += index % output_size * stride;
    index /= output_size;
    stride *= size;
  }
  return result;
}

static void run_elementwise(enum op op, struct operand a, struct operand b, struct operand alpha, const struct value* out,
                            void* to) {
  for (int64_t i = 0; i < out->count; ++i) {
    const int64_t ia = broadcast(a.value, out, i);
    const int64_t ib = broadcast(b.value, out, i);
    if (out->dtype == LTC_F32) {
      const double x = as_float(a, ia), y = as_float(b, ib);
      const double sum = x + as_float(alpha, 0) * y;
      ((float*)to)[i] = (float)(op == ADD ? sum : op == MUL ? x * y : op == NEG ? -x : x < 0 ? 0 : x);
    } else {
      const int64_t x = as_int(a, ia), y = as_int(b, ib);
      const int64_t sum = wrap_add(x, wrap_mul(as_int(alpha, 0), y));
      ((int64_t*)to)[i] = op == ADD ? sum : op == MUL ? wrap_mul(x, y) : op == NEG ? wrap_mul(x, -1) : x < 0 ? 0 : x;
    }
  }
}

static void run_mm(struct operand a, struct operand b, const struct value* out, void* to) {
  const int64_t rows = out->sizes[0], columns = out->sizes[1], inner = a.value->sizes[1];
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      int64_t int_sum = 0;
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t ia = i * inner + k, ib = k * columns + j;
        if (out->dtype == LTC_F32) sum += as_float(a, ia) * as_float(b, ib);
        if (out->dtype == LTC_I64) int_sum = wrap_add(int_sum, wrap_mul(as_int(a, ia), as_int(b, ib)));
      }
      if (out->dtype == LTC_F32) ((float*)to)[i * columns + j] = (float)sum;
      if (out->dtype == LTC_I64) ((int64_t*)to)[i * columns + j] = int_sum;
    }
  }
}

static void run_step(const test_plan* plan, const struct step* step, void* const* data) {
  static const struct value number = {LTC_F64, 0, {0}, 1};
  const struct operand a = {&plan->values[step->inputs[0]], data[step->inputs[0]]};
  const uint32_t second = step->inputs[1] == LTC_NONE ? step->inputs[0] : step->inputs[1];
  const struct operand b = {&plan->values[second], data[second]};
  struct operand alpha = {&number, &step->alpha};
  if (step->alpha_value != LTC_NONE) {
    alpha.value = &plan->values[step->alpha_value];
    alpha.data = data[step->alpha_value];
  }
  const struct value* out = &plan->values[step->output];
  if (step->op == MM) {
    run_mm(a, b, out, data[step->output]);
  } else {
    run_elementwise(step->op, a, b, alpha, out, data[step->output]);
  }
}

bool test_plan_run(const test_plan* plan, const void* const* inputs, const ltc_scalar* scalars, void* const* outputs) {
  void** data = calloc(plan->value_count + 1, sizeof *data); /* by value id */
  void** own = calloc(plan->step_count + 1, sizeof *own);    /* intermediate values, by step */
  bool enough = data && own;
  if (enough) {
    for (size_t i = 0; i < plan->input_count; ++i) data[plan->inputs[i]] = (void*)inputs[i];
    for (size_t i = 0; i < plan->scalar_count; ++i) data[plan->scalars[i]] = (void*)&scalars[i];
    for (size_t i = 0; i < plan->output_count; ++i) data[plan->outputs[i]] = outputs[i];
  }
  for (size_t i = 0; enough && i < plan->step_count; ++i) {
    const struct step* step = &plan->steps[i];
    if (!data[step->output]) {
      data[step->output] = own[i] = calloc((size_t)plan->values[step->output].count + 1, 8);
      enough = own[i] != NULL;
    }
    if (enough) run_step(plan, step, data);
  }
  for (size_t i = 0; own && i < plan->step_count; ++i) free(own[i]);
  free(own);
  free(data);
  return enough;
}

bool test_plan_write(const test_plan* plan, const ltc_sink* sink) {
  for (size_t i = 0; i < plan->step_count; ++i) {
    const struct step* step = &plan->steps[i];
    char line[128];
    int size = snprintf(line, sizeof line, "%%%u = %s(%%%u", step->output, ops[step->op].name, step->inputs[0]);
    if (step->inputs[1] != LTC_NONE) size += snprintf(line + size, sizeof line - (size_t)size, ", %%%u", step->inputs[1]);
    size += snprintf(line + size, sizeof line - (size_t)size, ")\n");
    if (!sink->write(sink->context, line, (size_t)size)) return false;
  }
  return true;
}
