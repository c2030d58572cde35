/* A plugin that computes the minimal opset with plain loops over host memory. Here: the slots of the ABI. plan.c reads graphs and
 * runs them; the ops are tables, each in a file of its own.
 *
 * MINIMAL_ASYNC makes it asynchronous. */
#include "ltc/entry.h"
#include "plan.h"
#include "queue.h"

#ifdef MINIMAL_ASYNC
#define NAME "minimal_async"
#else
#define NAME "minimal"
#endif

/* ---- the ABI's objects and slots ---- */

struct ltc_plugin {
  const ltc_host_api* host;
};
struct ltc_device {
  ltc_plugin* plugin;
  struct queue* queue; /* NULL in the synchronous variant */
};
struct ltc_buffer {
  struct work destroy;
  ltc_device* device;
  ltc_dtype dtype;
  uint64_t bytes;
  void* data;
};
struct ltc_executable {
  struct work destroy;
  ltc_device* device;
  struct plan* plan;
};

const ltc_host_api* host_of(const ltc_device* device) { return device->plugin->host; }

static ltc_status* error(ltc_plugin* plugin, ltc_code code, size_t node, const char* text) {
  return plugin->host->status_create(plugin->host->host, code, (uint32_t)node, text, strlen(text));
}
static ltc_status* out_of_memory(ltc_plugin* plugin) { return error(plugin, LTC_RESOURCE_EXHAUSTED, LTC_NONE, "out of memory"); }

static ltc_string string(const char* text) { return (ltc_string){text, strlen(text)}; }

static ltc_status* submit(ltc_device* device, struct work* work, ltc_event** done) {
#ifdef MINIMAL_ASYNC
  return queue_push(device->queue, work, done) ? NULL : out_of_memory(device->plugin);
#else
  (void)done;
  struct failure failure = {0};
  if (work->run(work, &failure)) return NULL;
  free(failure.good); /* what a run that is refused has made is nobody's */
  return error(device->plugin, failure.code, failure.node, failure.message);
#endif
}

static ltc_status* describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  (void)plugin;
  info->name = string(NAME);
  info->version = string("1.0");
  info->licence = string("Apache-2.0");
  info->device_count = 1;
#if defined(__SANITIZE_ADDRESS__)
  info->sanitizers = LTC_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  info->sanitizers = LTC_SANITIZER_THREAD;
#endif
  return NULL;
}

static ltc_status* device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  if (args->ordinal != 0) return error(plugin, LTC_NOT_FOUND, LTC_NONE, "there is device 0 only");
  ltc_device* made = calloc(1, sizeof *made);
  if (!made) return out_of_memory(plugin);
  made->plugin = plugin;
#ifdef MINIMAL_ASYNC
  made->queue = queue_create(plugin->host);
  if (!made->queue) {
    free(made);
    return out_of_memory(plugin);
  }
#endif
  info->name = string("host memory");
  info->fingerprint = string(NAME "-1");
  for (ltc_dtype dtype = 1; dtype < 64; ++dtype) info->dtypes |= (uint64_t)(element_bytes(dtype) > 0) << dtype;
  *device = made;
  return NULL;
}

static void device_close(ltc_device* device) {
#ifdef MINIMAL_ASYNC
  queue_destroy(device->queue);
#endif
  free(device);
}

/* ---- memory ---- */

static ltc_buffer* new_buffer(ltc_device* device, ltc_dtype dtype, uint64_t bytes) {
  ltc_buffer* buffer = calloc(1, sizeof *buffer);
  void* data = bytes < PTRDIFF_MAX ? malloc((size_t)bytes + 1) : NULL;
  if (!buffer || !data) {
    free(buffer);
    free(data);
    return NULL;
  }
  *buffer = (ltc_buffer){.device = device, .dtype = dtype, .bytes = bytes, .data = data};
  return buffer;
}

static ltc_status* buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  uint64_t bytes = element_bytes(args->type->dtype);
  if (bytes == 0) return error(device->plugin, LTC_UNSUPPORTED, LTC_NONE, "a dtype whose elements are no whole bytes");
  for (uint32_t dim = 0; dim < args->type->rank; ++dim)
    if (__builtin_mul_overflow(bytes, (uint64_t)args->type->sizes[dim], &bytes)) bytes = UINT64_MAX;
  ltc_buffer* made = new_buffer(device, args->type->dtype, bytes);
  if (!made) return out_of_memory(device->plugin);
  *buffer = made;
  return NULL;
}

static bool end_buffer(struct work* work, struct failure* failure) {
  (void)failure;
  free(((ltc_buffer*)work)->data);
  free(work);
  return true;
}

static void buffer_destroy(ltc_buffer* buffer) {
  buffer->destroy.run = end_buffer;
  (void)submit(buffer->device, &buffer->destroy, NULL);
}

struct copy {
  struct work work;
  void* to;
  const void* from;
  uint64_t bytes;
};

static bool run_copy(struct work* work, struct failure* failure) {
  (void)failure;
  struct copy* copy = (struct copy*)work;
  if (copy->bytes) memcpy(copy->to, copy->from, copy->bytes);
  free(copy);
  return true;
}

static bool outside(const ltc_buffer* buffer, uint64_t offset, uint64_t bytes) {
  return offset > buffer->bytes || bytes > buffer->bytes - offset;
}

static ltc_status* transfer(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  ltc_plugin* plugin = device->plugin;
  const bool on_device = args->direction == LTC_ON_DEVICE, to_device = args->direction == LTC_TO_DEVICE;
  if (args->direction < LTC_TO_DEVICE || args->direction > LTC_ON_DEVICE || args->flags)
    return error(plugin, LTC_UNSUPPORTED, LTC_NONE, "unknown direction or flag");
  if (outside(args->buffer, args->offset_bytes, args->size_bytes) ||
      (on_device && outside(args->source, args->source_offset_bytes, args->size_bytes)))
    return error(plugin, LTC_INVALID_ARGUMENT, LTC_NONE, "a range outside the buffer");
  struct copy* copy = calloc(1, sizeof *copy);
  if (!copy) return out_of_memory(plugin);
  char* here = (char*)args->buffer->data + args->offset_bytes;
  *copy = (struct copy){{NULL, run_copy, NULL}, here, args->from, args->size_bytes};
  if (on_device) copy->from = (char*)args->source->data + args->source_offset_bytes;
  if (!on_device && !to_device) copy->to = args->to, copy->from = here;
  ltc_status* failed = submit(device, &copy->work, done);
  if (failed) free(copy);
  return failed;
}

/* ---- computing ---- */

static ltc_status* claims(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster) {
  return plan_claims(args->graph, cluster) ? NULL : out_of_memory(device->plugin);
}

static ltc_status* lower(ltc_device* device, const ltc_lower_args* args, ltc_program** program) {
  const size_t node = plan_refused(args->graph);
  if (node != LTC_NONE) return error(device->plugin, LTC_UNSUPPORTED, node, "not in the table of ops");
  const void* sizes = ltc_find_extension(args->ext, LTC_EXTENSION_SYMBOLIC);
  *program = (ltc_program*)plan_create(args->graph, sizes); /* a program is its plan */
  return *program ? NULL : out_of_memory(device->plugin);
}

static void program_destroy(ltc_program* program) { plan_release((struct plan*)program); }

static ltc_status* compile(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
  ltc_executable* made = calloc(1, sizeof *made);
  if (!made) return out_of_memory(device->plugin);
  made->device = device;
  made->plan = plan_retain((struct plan*)args->program);
  *executable = made;
  return NULL;
}

static bool end_executable(struct work* work, struct failure* failure) {
  (void)failure;
  plan_release(((ltc_executable*)work)->plan);
  free(work);
  return true;
}

static void executable_destroy(ltc_executable* executable) {
  executable->destroy.run = end_executable;
  (void)submit(executable->device, &executable->destroy, NULL);
}

/* The executable and the buffers are destroyed in queue order, so what this points to is there when its turn comes. */
struct run {
  struct work work;
  struct plan* plan;       /* one reference */
  ltc_run_profile profile; /* zero where the host did not ask */
  void* data[];            /* of the params, then of the outputs; numbers that are passed by value lie behind it */
};

static void free_run(struct run* run) {
  if (run) plan_release(run->plan);
  free(run);
}

static bool run_run(struct work* work, struct failure* failure) {
  struct run* run = (struct run*)work;
  const bool good = plan_run(run->plan, run->data, &run->profile, failure);
  free_run(run);
  return good;
}

/* The executable's plan for the sizes of this run, one reference. */
static ltc_status* plan_of_run(const ltc_execute_args* args, struct plan** plan) {
  ltc_plugin* plugin = args->executable->device->plugin;
  const ltc_symbol_values* symbols = (const void*)ltc_find_extension(args->ext, LTC_EXTENSION_SYMBOLIC);
  if ((symbols ? symbols->symbol_count : 0) != plan_symbol_count(args->executable->plan))
    return error(plugin, LTC_INVALID_ARGUMENT, LTC_NONE, "not as many symbols as the graph has");
  *plan = plan_with_sizes(args->executable->plan, symbols ? symbols->values : NULL);
  return *plan ? NULL : out_of_memory(plugin);
}

/* Whether the inputs and scalars are as many, and the inputs as large and of the dtype, as the graph says. */
static bool fits(const struct plan* plan, const ltc_execute_args* args) {
  size_t input = 0, scalars = 0;
  for (size_t i = 0; i < plan_param_count(plan); ++i) {
    if (plan_param_is_number(plan, i)) {
      ++scalars;
      continue;
    }
    const struct array* type = plan_param(plan, i);
    if (input == args->input_count) return false;
    const ltc_buffer* buffer = args->inputs[input++];
    if (buffer->dtype != type->dtype || buffer->bytes != array_bytes(type)) return false;
  }
  return input == args->input_count && scalars == args->scalar_count && args->output_count == plan_output_count(plan);
}

/* Takes the plan's reference. */
static struct run* new_run(struct plan* plan, const ltc_execute_args* args) {
  const size_t params = plan_param_count(plan), pointers = params + args->output_count;
  struct run* run = calloc(1, sizeof *run + pointers * sizeof *run->data + args->scalar_count * sizeof *args->scalars);
  if (!run) {
    plan_release(plan);
    return NULL;
  }
  run->work.run = run_run;
  run->plan = plan;
  const ltc_run_profile* asked = (const void*)ltc_find_extension(args->ext, LTC_EXTENSION_PROFILE);
  if (asked) run->profile = *asked;
  ltc_scalar* number = (ltc_scalar*)(void*)(run->data + pointers);
  if (args->scalar_count) memcpy(number, args->scalars, args->scalar_count * sizeof *number);
  for (size_t i = 0, input = 0; i < params; ++i) {
    run->data[i] = plan_param_is_number(plan, i) ? (void*)number++ : args->inputs[input++]->data;
  }
  return run;
}

/* A run that fails consumes nothing: the asynchronous variant waits for one that is given inputs. */
static ltc_status* submit_run(ltc_device* device, struct run* run, const ltc_execute_args* args, ltc_event** done) {
#ifdef MINIMAL_ASYNC
  if (args->donate && memchr(args->donate, 1, args->input_count)) {
    ltc_event* end = NULL;
    bool finished;
    ltc_status* failed = submit(device, &run->work, &end);
    if (!failed) failed = queue_event_wait(end, LTC_FOREVER, &finished);
    if (end) queue_event_destroy(end);
    return failed;
  }
#endif
  (void)args;
  return submit(device, &run->work, done);
}

static ltc_status* execute(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  struct plan* plan = NULL;
  ltc_status* refused = plan_of_run(args, &plan);
  if (refused) return refused;
  if (!fits(plan, args)) {
    plan_release(plan);
    return error(device->plugin, LTC_INVALID_ARGUMENT, LTC_NONE, "inputs, scalars or outputs are not as the graph has them");
  }
  struct run* run = new_run(plan, args);
  ltc_buffer** made = calloc(args->output_count + 1, sizeof *made);
  bool enough = run && made;
  for (size_t i = 0; enough && i < args->output_count; ++i) {
    made[i] = new_buffer(device, plan_output(plan, i)->dtype, array_bytes(plan_output(plan, i)));
    enough = made[i] != NULL;
    if (enough) run->data[plan_param_count(plan) + i] = made[i]->data;
  }
  ltc_status* failed = enough ? submit_run(device, run, args, done) : out_of_memory(device->plugin);
  for (size_t i = 0; failed && made && i < args->output_count; ++i) {
    if (made[i]) (void)end_buffer(&made[i]->destroy, NULL);
  }
  if (!enough) free_run(run);
  if (!failed) memcpy(outputs, made, args->output_count * sizeof *made);
  for (size_t i = 0; !failed && args->donate && i < args->input_count; ++i) {
    if (args->donate[i]) buffer_destroy(args->inputs[i]);
  }
  free(made);
  return failed;
}

/* ---- the entry ---- */

static void plugin_close(ltc_plugin* plugin) { free(plugin); }

static const ltc_extension symbolic = {sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, NULL};
const ltc_extension profile_and_more = {sizeof(ltc_extension), LTC_EXTENSION_PROFILE, 1, &symbolic};

static const ltc_plugin_api api = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, event_good_outputs),
    .ext = &collectives.head,
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .transfer = transfer,
    .claims = claims,
    .lower = lower,
    .program_destroy = program_destroy,
    .compile = compile,
    .executable_destroy = executable_destroy,
    .execute = execute,
#ifdef MINIMAL_ASYNC
    .event_wait = queue_event_wait,
    .event_destroy = queue_event_destroy,
    .event_good_outputs = queue_event_good_outputs,
#endif
    .plugin_close = plugin_close,
};

bool ltc_plugin_entry(ltc_entry_args* args) {
  const ltc_version spoken = {1, 0};
  if (!ltc_agree(args, spoken, spoken) || !ltc_has_no_options(args)) return false;
  ltc_plugin* plugin = calloc(1, sizeof *plugin);
  if (!plugin) return false;
  plugin->host = args->host;
  args->api = &api;
  args->plugin = plugin;
  return true;
}
