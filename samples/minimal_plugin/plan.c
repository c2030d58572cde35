#include "plan.h"

#include "ltc/entry.h"
#include "ltc/opset.h"

#include <stdatomic.h>

static const struct op* const tables[] = {unary_ops,     elementwise_ops, cast_ops,   movement_ops,  creation_ops,
                                          reduction_ops, index_ops,       matrix_ops, collective_ops};

struct step {
  const struct op* op;
  kernel* run;
  size_t in_count, out_count;
  size_t *in, *out; /* value ids, or LTC_NONE */
  struct attr attrs[MAX_ATTRS];
};

/* A size, or an element of an attribute, that is a formula of a symbol. */
struct symbolic_number {
  ltc_symbolic_number number;
  size_t slot; /* which of the step's attributes, which are in the order of its row */
};

/* All that it points to, but for is_number and symbolic_numbers, lies in one piece of memory. One with sizes shares with the
 * general one what does not depend on them. */
struct plan {
  atomic_int references;
  struct plan* general; /* NULL where it stands for itself */
  size_t symbol_count, symbolic_number_count;
  struct symbolic_number* symbolic_numbers;
  size_t value_count, step_count, param_count, output_count;
  struct array* values;
  struct step* steps;
  bool* is_number;          /* by value: a number that is passed by value */
  size_t *params, *outputs; /* value ids */
  size_t* last_step;        /* by value: the last that reads it, or makes it; LTC_NONE for params and outputs */
};

struct plan* plan_retain(struct plan* plan) {
  atomic_fetch_add(&plan->references, 1);
  return plan;
}

void plan_release(struct plan* plan) {
  if (atomic_fetch_sub(&plan->references, 1) > 1) return;
  if (plan->general) {
    plan_release(plan->general);
  } else {
    free(plan->is_number);
    free(plan->symbolic_numbers);
  }
  free(plan);
}

size_t plan_symbol_count(const struct plan* plan) { return plan->symbol_count; }
size_t plan_param_count(const struct plan* plan) { return plan->param_count; }
bool plan_param_is_number(const struct plan* plan, size_t param) { return plan->is_number[plan->params[param]]; }
size_t plan_output_count(const struct plan* plan) { return plan->output_count; }
const struct array* plan_param(const struct plan* plan, size_t param) { return &plan->values[plan->params[param]]; }
const struct array* plan_output(const struct plan* plan, size_t output) { return &plan->values[plan->outputs[output]]; }

/* The attribute of a row's entry, "name" or "name=1"; NULL where the node has none. */
static const ltc_attr* find_attr(const ltc_node* node, const char* entry) {
  return ltc_find_attr(node, entry, strcspn(entry, "="), "");
}

/* Whether each value is a number passed by value; NULL when out of memory. */
static bool* find_numbers(const ltc_graph* graph) {
  bool* is_number = calloc(graph->value_count + 1, sizeof *is_number);
  for (size_t i = 0; is_number && i < graph->param_count; ++i) {
    is_number[graph->params[i]->value] = (graph->params[i]->flags & LTC_PARAM_SCALAR) != 0;
  }
  return is_number;
}

/* Whether a value is of the kind that a row asks for; see struct op. */
static bool fits(char kind, const ltc_type* type, bool is_number, ltc_dtype* shared) {
  if (type->rank > MAX_RANK || (is_number && kind != 'N') || kind == '-') return false;
  if (kind == 'B') return element_bytes(type->dtype) > 0;
  if (type->dtype >= DTYPES) return false;
  if (kind == 't') return type->dtype == LTC_U8;
  if (kind == 'b') return type->dtype == LTC_BOOL;
  if (kind == 'i') return type->dtype == LTC_I64;
  if (kind == 'A') return true;
  if (*shared == 0) *shared = type->dtype;
  return *shared == type->dtype;
}

/* The kernel of the row that computes the node, or NULL. */
static kernel* match(const struct op* op, const ltc_graph* graph, const bool* is_number, const ltc_node* node) {
  if (op->takes ? !op->takes(node) : !ltc_node_matches(node, ltc_op_operands(node->op))) return NULL;
  ltc_dtype shared = 0;
  size_t operand = 0, result = 0;
  const char* kind = op->types;
  while (*kind != ':') {
    const bool given = operand < node->input_count;
    const uint32_t value = given ? node->inputs[operand] : LTC_NONE;
    if (*kind == '+' && !given) {
      ++kind;
    } else if (*kind == 's' || ((*kind == '-' || *kind == 't') && value == LTC_NONE)) {
      operand += *kind != 's' || (value != LTC_NONE && is_number[value]);
      ++kind;
    } else {
      if (value == LTC_NONE || !fits(*kind, graph->types[value], is_number[value], &shared)) return NULL;
      ++operand;
      kind += *kind != '+';
    }
  }
  while (*++kind && result < node->output_count) {
    const uint32_t value = node->outputs[result++];
    if (value != LTC_NONE && !fits(*kind, graph->types[value], false, &shared)) return NULL;
  }
  if (*kind || operand != node->input_count || result != node->output_count) return NULL;
  for (size_t i = 0; i < MAX_ATTRS && op->attrs[i]; ++i) {
    const ltc_attr* attr = strchr(op->attrs[i], '=') ? find_attr(node, op->attrs[i]) : NULL;
    const bool is_one = attr && (attr->kind == LTC_ATTR_INT ? attr->value.ints[0] == 1 : attr->value.floats[0] == 1);
    if (attr && !is_one) return NULL;
  }
  return op->kernels[shared];
}

static const struct op* find_op(const ltc_graph* graph, const bool* is_number, const ltc_node* node, kernel** run) {
  for (size_t table = 0; table < sizeof tables / sizeof *tables; ++table) {
    for (const struct op* op = tables[table]; op->name; ++op) {
      if (!ltc_is_name(node->name, op->name, strlen(op->name), "")) continue;
      *run = match(op, graph, is_number, node);
      return *run ? op : NULL;
    }
  }
  return NULL;
}

/* The plugin ignores nothing that a newer host may say and that it does not know. */
static bool knows_params(const ltc_graph* graph) {
  bool known = true;
  for (size_t i = 0; i < graph->param_count; ++i) known &= !(graph->params[i]->flags & ~LTC_PARAM_SCALAR);
  return known;
}

bool plan_claims(const ltc_graph* graph, uint32_t* claimed) {
  bool* is_number = find_numbers(graph);
  const bool known = knows_params(graph);
  for (size_t i = 0; is_number && i < graph->node_count; ++i) {
    kernel* run;
    const ltc_node* node = graph->nodes[i];
    claimed[i] = known && find_op(graph, is_number, node, &run) != NULL;
  }
  const bool enough = is_number != NULL;
  free(is_number);
  return enough;
}

static size_t plan_bytes(const ltc_graph* graph) {
  size_t words = graph->value_count + graph->param_count + graph->output_count;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const ltc_node* node = graph->nodes[i];
    words += node->input_count + node->output_count + MAX_ATTRS; /* no row lists more operands that may be absent */
    for (size_t k = 0; k < node->attr_count; ++k) words += node->attrs[k]->count;
  }
  return sizeof(struct plan) + graph->value_count * sizeof(struct array) + graph->node_count * sizeof(struct step) +
         words * sizeof(size_t);
}

static void* take(char** memory, size_t bytes) {
  *memory += bytes;
  return *memory - bytes;
}

/* The ids of `from`, and LTC_NONE behind them up to `count`. */
static size_t* take_ids(char** memory, const uint32_t* from, size_t from_count, size_t count) {
  size_t* ids = take(memory, count * sizeof *ids);
  for (size_t i = 0; i < count; ++i) ids[i] = i < from_count ? from[i] : LTC_NONE;
  return ids;
}

static struct array read_type(const ltc_type* type) {
  struct array array = {type->dtype, type->rank, {0}, 1, NULL};
  for (uint32_t dim = 0; dim < type->rank && dim < MAX_RANK; ++dim) array.count *= array.sizes[dim] = type->sizes[dim];
  return array;
}

static struct step read_step(char** memory, const ltc_node* node, const struct op* op, kernel* run) {
  const size_t listed = strcspn(op->types, ":"), in_count = node->input_count > listed ? node->input_count : listed;
  struct step step = {op, run, in_count, node->output_count, NULL, NULL, {{0}}};
  step.in = take_ids(memory, node->inputs, node->input_count, in_count);
  step.out = take_ids(memory, node->outputs, node->output_count, node->output_count);
  for (size_t i = 0; i < MAX_ATTRS && op->attrs[i]; ++i) {
    const ltc_attr* attr = find_attr(node, op->attrs[i]);
    if (!attr || attr->count == 0) continue;
    step.attrs[i] = (struct attr){attr->kind, attr->count, take(memory, attr->count * sizeof(union number))};
    if (attr->kind == LTC_ATTR_STRING) {
      const ltc_string text = attr->value.strings[0];
      if (text.size) memcpy(step.attrs[i].values, text.data, text.size < sizeof(union number) ? text.size : sizeof(union number));
      continue;
    }
    memcpy(step.attrs[i].values, attr->value.ints, attr->count * sizeof(union number));
  }
  return step;
}

size_t plan_refused(const ltc_graph* graph) {
  uint32_t* claimed = calloc(graph->node_count + 1, sizeof *claimed);
  const bool enough = claimed && plan_claims(graph, claimed);
  size_t node = 0;
  while (enough && node < graph->node_count && claimed[node]) ++node;
  free(claimed);
  return enough && node < graph->node_count ? node : LTC_NONE;
}

/* Where the row of the node's op has this attribute; MAX_ATTRS where it does not: then the types say the same. */
static size_t slot_of(const struct op* op, const ltc_node* node, const ltc_attr* attr) {
  for (size_t slot = 0; slot < MAX_ATTRS && op->attrs[slot]; ++slot) {
    if (find_attr(node, op->attrs[slot]) == attr) return slot;
  }
  return MAX_ATTRS;
}

static void read_symbolic_numbers(struct plan* plan, const ltc_graph* graph, const ltc_symbolic_sizes* sizes) {
  plan->symbol_count = sizes->symbol_count;
  for (size_t i = 0; i < sizes->number_count; ++i) {
    const ltc_symbolic_number number = sizes->numbers[i];
    const ltc_node* node = number.attr == LTC_NONE ? NULL : graph->nodes[number.owner];
    const size_t slot = node ? slot_of(plan->steps[number.owner].op, node, node->attrs[number.attr]) : 0;
    if (slot < MAX_ATTRS) plan->symbolic_numbers[plan->symbolic_number_count++] = (struct symbolic_number){number, slot};
  }
}

struct plan* plan_create(const ltc_graph* graph, const ltc_symbolic_sizes* sizes) {
  char* memory = calloc(1, plan_bytes(graph));
  bool* is_number = find_numbers(graph);
  struct symbolic_number* symbolic_numbers = calloc((sizes ? sizes->number_count : 0) + 1, sizeof *symbolic_numbers);
  if (!memory || !is_number || !symbolic_numbers) {
    free(memory);
    free(is_number);
    free(symbolic_numbers);
    return NULL;
  }
  struct plan* plan = take(&memory, sizeof *plan);
  *plan = (struct plan){.references = 1,
                        .symbolic_numbers = symbolic_numbers,
                        .value_count = graph->value_count,
                        .step_count = graph->node_count,
                        .param_count = graph->param_count,
                        .output_count = graph->output_count,
                        .is_number = is_number};
  plan->values = take(&memory, graph->value_count * sizeof *plan->values);
  for (size_t i = 0; i < graph->value_count; ++i) plan->values[i] = read_type(graph->types[i]);
  plan->steps = take(&memory, graph->node_count * sizeof *plan->steps);
  plan->last_step = take(&memory, graph->value_count * sizeof *plan->last_step);
  for (size_t i = 0; i < graph->node_count; ++i) {
    struct step* step = &plan->steps[i];
    kernel* run = NULL;
    const struct op* op = find_op(graph, is_number, graph->nodes[i], &run);
    *step = read_step(&memory, graph->nodes[i], op, run);
    for (size_t k = 0; k < step->in_count + step->out_count; ++k) {
      const size_t value = k < step->in_count ? step->in[k] : step->out[k - step->in_count];
      if (value != LTC_NONE) plan->last_step[value] = i;
    }
  }
  plan->outputs = take_ids(&memory, graph->outputs, graph->output_count, graph->output_count);
  plan->params = take(&memory, graph->param_count * sizeof *plan->params);
  for (size_t i = 0; i < graph->param_count; ++i) plan->params[i] = graph->params[i]->value;
  if (sizes) read_symbolic_numbers(plan, graph, sizes);
  for (size_t i = 0; i < graph->param_count; ++i) plan->last_step[plan->params[i]] = LTC_NONE;
  for (size_t i = 0; i < graph->output_count; ++i) plan->last_step[plan->outputs[i]] = LTC_NONE;
  return plan;
}

/* ---- running it ---- */

static void* take_copy(char** memory, const void* from, size_t bytes) { return memcpy(take(memory, bytes), from, bytes); }

static size_t sized_bytes(const struct plan* plan) {
  size_t bytes = sizeof *plan + plan->value_count * sizeof *plan->values + plan->step_count * sizeof *plan->steps;
  for (size_t i = 0; i < plan->symbolic_number_count; ++i) {
    const struct symbolic_number* symbolic = &plan->symbolic_numbers[i];
    if (symbolic->number.attr == LTC_NONE) continue;
    bytes += plan->steps[symbolic->number.owner].attrs[symbolic->slot].count * sizeof(union number);
  }
  return bytes;
}

/* An attribute's elements are the general plan's until the first of them changes. */
static void set_element(struct plan* plan, const struct symbolic_number* symbolic, int64_t value, char** memory) {
  const size_t step = symbolic->number.owner;
  struct attr* attr = &plan->steps[step].attrs[symbolic->slot];
  if (attr->values == plan->general->steps[step].attrs[symbolic->slot].values)
    attr->values = take_copy(memory, attr->values, attr->count * sizeof *attr->values);
  union number* element = &attr->values[symbolic->number.element];
  if (attr->kind == LTC_ATTR_FLOAT || attr->kind == LTC_ATTR_FLOATS) {
    element->f = (double)value;
  } else {
    element->i = value;
  }
}

static void set_size(struct array* array, uint32_t dim, int64_t size) {
  array->sizes[dim] = size;
  array->count = 1;
  for (uint32_t i = 0; i < array->rank; ++i) array->count *= array->sizes[i];
}

struct plan* plan_with_sizes(struct plan* plan, const int64_t* symbols) {
  if (plan->symbol_count == 0) return plan_retain(plan);
  char* memory = malloc(sized_bytes(plan));
  if (!memory) return NULL;
  struct plan* sized = take_copy(&memory, plan, sizeof *plan);
  sized->references = 1;
  sized->general = plan_retain(plan);
  sized->values = take_copy(&memory, plan->values, plan->value_count * sizeof *plan->values);
  sized->steps = take_copy(&memory, plan->steps, plan->step_count * sizeof *plan->steps);
  for (size_t i = 0; i < plan->symbolic_number_count; ++i) {
    const ltc_symbolic_number number = plan->symbolic_numbers[i].number;
    const int64_t value = number.scale * symbols[number.symbol] + number.offset;
    if (number.attr == LTC_NONE) {
      set_size(&sized->values[number.owner], number.element, value);
    } else {
      set_element(sized, &plan->symbolic_numbers[i], value, &memory);
    }
  }
  return sized;
}

static void end_values(const struct plan* plan, size_t step, const size_t* ids, size_t count, struct array* values) {
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] == LTC_NONE || plan->last_step[ids[i]] != step) continue;
    free(values[ids[i]].data);
    values[ids[i]].data = NULL;
  }
}

static bool run_step(const struct step* step, struct array* values, struct failure* failure) {
  const struct array* in[step->in_count + 1];
  struct array* out[step->out_count + 1];
  for (size_t i = 0; i < step->in_count; ++i) in[i] = step->in[i] == LTC_NONE ? NULL : &values[step->in[i]];
  for (size_t i = 0; i < step->out_count; ++i) {
    out[i] = step->out[i] == LTC_NONE ? NULL : &values[step->out[i]];
    if (out[i] && !out[i]->data) out[i]->data = malloc((size_t)out[i]->count * element_bytes(out[i]->dtype) + 1);
    if (out[i] && !out[i]->data) return false;
  }
  struct call call = {in, step->in_count, out, step->attrs, failure};
  return step->run(&call);
}

/* A value that a failed step was to make, or that was to be made from one. */
static bool reads_bad(const struct step* step, const bool* bad) {
  bool any = false;
  for (size_t i = 0; i < step->in_count; ++i) any |= step->in[i] != LTC_NONE && bad[step->in[i]];
  return any;
}

/* Goes on behind a step that fails, with those that do not depend on it. */
static bool run_steps(const struct plan* plan, struct array* values, bool* bad, const ltc_run_profile* profile,
                      struct failure* failure) {
  bool good = true;
  for (size_t i = 0; i < plan->step_count; ++i) {
    const struct step* step = &plan->steps[i];
    struct failure own = {LTC_RESOURCE_EXHAUSTED, (uint32_t)i, "out of memory", NULL}; /* of whoever says nothing else */
    const uint64_t begin_ns = profile->kernel ? profile_now() : 0;
    const bool skipped = reads_bad(step, bad), done = !skipped && run_step(step, values, &own);
    own.node = (uint32_t)i; /* a step is a node */
    if (done && profile->kernel) profile_tell(profile, step->op->name, (uint32_t)i, begin_ns);
    if (!done && !skipped && good) *failure = own;
    good &= done || skipped;
    for (size_t k = 0; !done && k < step->out_count; ++k) {
      if (step->out[k] != LTC_NONE) bad[step->out[k]] = true;
    }
    end_values(plan, i, step->in, step->in_count, values);
    end_values(plan, i, step->out, step->out_count, values);
  }
  return good;
}

bool plan_run(const struct plan* plan, void* const* data, const ltc_run_profile* profile, struct failure* failure) {
  struct array* values = malloc((plan->value_count + 1) * sizeof *values);
  bool* bad = calloc(plan->value_count + 1, sizeof *bad);
  *failure = (struct failure){LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of memory", NULL};
  if (!values || !bad) {
    free(values);
    free(bad);
    return false;
  }
  memcpy(values, plan->values, plan->value_count * sizeof *values);
  for (size_t i = 0; i < plan->param_count; ++i) {
    struct array* value = &values[plan->params[i]];
    value->data = data[i];
    const bool is_flag = plan_param_is_number(plan, i) && value->dtype == LTC_BOOL; /* 8 bytes by value, one as an element */
    if (is_flag) *(uint8_t*)data[i] = ((const ltc_scalar*)data[i])->i != 0;
  }
  for (size_t i = 0; i < plan->output_count; ++i) values[plan->outputs[i]].data = data[plan->param_count + i];
  const bool good = run_steps(plan, values, bad, profile, failure);
  failure->good = good ? NULL : malloc(plan->output_count + 1);
  for (size_t i = 0; failure->good && i < plan->output_count; ++i) failure->good[i] = !bad[plan->outputs[i]];
  free(values);
  free(bad);
  return good;
}
