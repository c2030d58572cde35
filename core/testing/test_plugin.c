/* A small plugin for the unit tests of the core: host memory and the ops of test_plan.h. Complete but for saving executables, and
 * the shape that a vendor's first plugin has too.
 *
 * One file, built several times. LTC_TEST_NAME names the build; these, where defined, change it:
 *   LTC_TEST_ASYNC        a worker thread per device, and events that are pending for real
 *   LTC_TEST_SLEEP_MS     each run takes this much longer
 *   LTC_TEST_FAILS        every second run of a device fails with INTERNAL, through its event
 *   LTC_TEST_RUNS_UNTIL_LOST
 *                         the first device is lost in the run after so many; one device is open at a time
 *   LTC_TEST_DTYPES       buffers may have any dtype up to C128, but for the bits of this
 *   LTC_TEST_DEVICES      how many devices; else 1
 *   LTC_TEST_PRECISION    understands that extension, and logs what is allowed when it lowers
 *   LTC_TEST_SYMBOLIC     understands that extension, but refuses graphs with so many symbols
 *   LTC_TEST_ANY_OPERANDS claims nodes with more operands than it knows
 *   LTC_TEST_FAULT        one fault of the list below
 *   LTC_TEST_ENTRY        exports the entry under this name, for a wrapper */
#define _POSIX_C_SOURCE 200809L
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/testing/test_device.h"
#include "core/testing/test_plan.h"
#include "ltc/entry.h"
#include "ltc/precision.h"

#ifndef LTC_TEST_DEVICES
#define LTC_TEST_DEVICES 1
#endif
#ifdef LTC_TEST_PRECISION
#define TAKES_PRECISION true
#else
#define TAKES_PRECISION false
#endif
#ifdef LTC_TEST_SYMBOLIC
#define TAKES_SYMBOLS true
#define MOST_SYMBOLS (LTC_TEST_SYMBOLIC)
#else
#define TAKES_SYMBOLS false
#define MOST_SYMBOLS 1
#endif
#ifndef LTC_TEST_FAULT
#define LTC_TEST_FAULT NO_FAULT
#endif
#ifndef LTC_TEST_ENTRY
#define LTC_TEST_ENTRY ltc_plugin_entry
#endif

enum {
  NO_FAULT,
  MEMORY_ONLY,        /* no computing slots: not a fault but a small plugin */
  OLD_ABI,            /* speaks 0.0 to 0.9, and refuses */
  WRONG_ABI,          /* the same, and agrees on 0.9 */
  NO_TABLE,           /* accepts and gives no table */
  SHORT_TABLE,        /* a table that ends before buffer_destroy */
  MISSING_SLOT,       /* no transfer */
  HALF_GROUP,         /* claims and the rest, but no executable_destroy */
  REQUIRES_EXTENSION, /* of the host */
  BAD_OUTPUTS,        /* execute leaves its last output null */
  NULL_BUFFER,        /* buffer_create succeeds and makes none */
  STRAY_EVENT,        /* transfer hands out an event without having event slots */
  CRASHES,            /* in execute */
  HANGS,              /* in execute */
  EXITS,              /* in execute */
  EXITS_IN_DESCRIBE,
  EXITS_IN_OPEN,
  SLEEPS_IN_COMPILE,  /* a second */
  OVERCLAIMS,         /* claims every node */
  NAMELESS_NODE,      /* lower refuses without the index of the node */
  IGNORES_FLAGS,      /* transfer accepts flags that do not exist */
  REFUSES_EXTENSIONS, /* also those that nobody has to know */
  TAKES_OPTIONS,      /* the entry, any */
  WRITES_ON_ERROR,    /* buffer_create writes its out parameter and fails */
  WRITES_BEYOND,      /* describe clears more than the host's struct has */
  KEEPS_DONATION,     /* execute does not free what was donated */
  KEEPS_EVENTS,       /* event_destroy does nothing */
  READS_LATE,         /* transfer reads host memory after it has returned */
  LOSES_ERRORS,       /* a range outside a buffer is cut off and copied */
  COUNTS_WRONG,       /* execute accepts any number of inputs */
  HANGS_LOADING,      /* in describe */
  CHANGES_FLOATS,     /* execute leaves the thread with another rounding */
  SAME_OUTPUT,        /* execute gives its first output as its last, too */
  INPUT_AS_OUTPUT,    /* execute gives its first input as its first output */
  SAME_EVENT,         /* execute gives the event of a device's first run for each */
  BAD_BYTES,          /* names are no UTF-8, nor is the message with which execute fails */
  FAULT = LTC_TEST_FAULT
};
static const uint32_t device_count = LTC_TEST_DEVICES;

static ltc_status* error(ltc_plugin* plugin, ltc_code code, const char* message) {
  return test_error(plugin, code, LTC_NONE, message);
}

static ltc_status* refuse_extensions(ltc_plugin* plugin, const ltc_extension* ext) {
  return ext && FAULT == REFUSES_EXTENSIONS ? error(plugin, LTC_UNSUPPORTED, "an extension that this plugin does not know")
                                            : NULL;
}

static ltc_string string(const char* text) {
  const ltc_string result = {text, strlen(text)};
  return result;
}

/* ---- memory slots ---- */

static ltc_status* describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  (void)plugin;
  if (FAULT == EXITS_IN_DESCRIBE) exit(3);
  if (FAULT == WRITES_BEYOND) memset((char*)info + info->struct_size, 0, 16);
  while (FAULT == HANGS_LOADING) continue;
  info->name = string(FAULT == BAD_BYTES ? "caf\xe9" : LTC_TEST_NAME);
  info->version = string("1.0");
  info->device_count = device_count;
  if (info->device_count == 0) info->why_no_device = string("this build of the test plugin pretends to have none");
#if defined(__SANITIZE_ADDRESS__)
  info->sanitizers = LTC_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  info->sanitizers = LTC_SANITIZER_THREAD;
#endif
  return NULL;
}

static ltc_status* device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  ltc_status* refused = refuse_extensions(plugin, args->ext);
  if (refused) return refused;
  if (FAULT == EXITS_IN_OPEN) exit(3);
  if (args->ordinal >= device_count) return error(plugin, LTC_NOT_FOUND, "no such device");
  if (LTC_TEST_RUNS_UNTIL_LOST > 0 && plugin->open > 0)
    return error(plugin, LTC_RESOURCE_EXHAUSTED, "the device is open already");
  ltc_device* made = test_device_open(plugin);
  if (!made) return test_out_of_memory(plugin);
  info->name = string(FAULT == BAD_BYTES ? "m\xe9moire" : "host memory");
  info->fingerprint = string(LTC_TEST_NAME "-1");
  info->dtypes = TEST_DTYPES;
  info->flags = device_count > 1 ? (uint32_t)LTC_DEVICE_PEER_COPY : 0;
  *device = made;
  return NULL;
}

static ltc_status* refuse_lost(ltc_device* device) {
  pthread_mutex_lock(&device->lock);
  const bool is_lost = device->is_lost;
  pthread_mutex_unlock(&device->lock);
  return is_lost ? error(device->plugin, LTC_DEVICE_LOST, TEST_LOST) : NULL;
}

static ltc_status* buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  ltc_status* refused = refuse_extensions(device->plugin, args->ext);
  if (!refused) refused = refuse_lost(device);
  if (refused) return refused;
  if (FAULT == NULL_BUFFER) return NULL;
  if (FAULT == WRITES_ON_ERROR) *buffer = (ltc_buffer*)(void*)device;
  if (test_element_bytes(args->type->dtype) == 0)
    return error(device->plugin, LTC_UNSUPPORTED, "a dtype that this plugin does not have");
  if (test_type_bytes(args->type) == UINT64_MAX)
    return error(device->plugin, LTC_RESOURCE_EXHAUSTED, "more bytes than 64 bits count");
  ltc_buffer* made = test_buffer_create(device, test_type_bytes(args->type));
  if (!made) return test_out_of_memory(device->plugin);
  *buffer = made;
  return NULL;
}

static void buffer_destroy(ltc_buffer* buffer) {
  struct task* task = test_task_create(buffer->device, false);
  if (!task) return; /* leaks rather than frees out of order */
  task->buffer = buffer;
  (void)test_submit(buffer->device, task, NULL);
}

static bool outside(const ltc_buffer* buffer, uint64_t offset, uint64_t size) {
  return offset > buffer->bytes || size > buffer->bytes - offset;
}

static ltc_status* transfer(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  ltc_plugin* plugin = device->plugin;
  ltc_status* refused = refuse_extensions(plugin, args->ext);
  if (!refused) refused = refuse_lost(device);
  if (refused) return refused;
  if (args->direction < LTC_TO_DEVICE || args->direction > LTC_ON_DEVICE)
    return error(plugin, LTC_UNSUPPORTED, "unknown direction");
  if (FAULT != IGNORES_FLAGS && args->flags) return error(plugin, LTC_UNSUPPORTED, "unknown flag");
  const bool on_device = args->direction == LTC_ON_DEVICE;
  if (FAULT == LOSES_ERRORS && outside(args->buffer, args->offset_bytes, args->size_bytes)) return NULL;
  if (outside(args->buffer, args->offset_bytes, args->size_bytes) ||
      (on_device && outside(args->source, args->source_offset_bytes, args->size_bytes))) {
    return error(plugin, LTC_INVALID_ARGUMENT, "a range outside the buffer");
  }
  struct task* task = test_task_create(device, true);
  if (!task) return test_out_of_memory(plugin);
  char* at = (char*)args->buffer->data + args->offset_bytes;
  task->size_bytes = args->size_bytes;
  task->copy_to = args->direction == LTC_FROM_DEVICE ? args->to : at;
  task->copy_from = args->direction == LTC_FROM_DEVICE ? at : args->from;
  if (on_device) task->copy_from = (char*)args->source->data + args->source_offset_bytes;
  if (args->size_bytes == 0) task->copy_to = NULL; /* the host side may be NULL then */
  (void)test_submit(device, task, done);
  if (FAULT == STRAY_EVENT) *done = (ltc_event*)(void*)device;
  if (FAULT == READS_LATE && *done) { /* says that it is over */
    test_event_destroy(*done);
    *done = NULL;
  }
  return NULL;
}

/* ---- computing slots ---- */

/* Says what products may round; 0 where nobody does. */
static void log_allowed(const ltc_host_api* host, const ltc_extension* ext) {
  ext = ltc_find_extension(ext, LTC_EXTENSION_PRECISION);
  const bool is_given = ext && ext->struct_size >= LTC_SIZE_TO(ltc_precision, allowed);
  char line[40];
  const int size =
      snprintf(line, sizeof line, "may round: %u", is_given ? (unsigned)((const ltc_precision*)(const void*)ext)->allowed : 0u);
  host->log(host->host, LTC_LOG_WARN, line, (size_t)size);
}

static ltc_status* claims(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster) {
  ltc_status* refused = refuse_extensions(device->plugin, args->ext);
  if (refused) return refused;
  for (size_t i = 0; i < args->graph->node_count; ++i) {
    cluster[i] = FAULT == OVERCLAIMS || !test_plan_refuse(args->graph, args->graph->nodes[i]);
  }
  return NULL;
}

static ltc_status* lower(ltc_device* device, const ltc_lower_args* args, ltc_program** program) {
  ltc_status* refused = refuse_extensions(device->plugin, args->ext);
  if (refused) return refused;
  for (size_t i = 0; i < args->graph->param_count; ++i) {
    if (args->graph->params[i]->flags & ~(uint32_t)LTC_PARAM_SCALAR)
      return error(device->plugin, LTC_UNSUPPORTED, "unknown flag of a param");
  }
  for (size_t i = 0; i < args->graph->node_count; ++i) {
    const char* why = test_plan_refuse(args->graph, args->graph->nodes[i]);
    if (why) return test_error(device->plugin, LTC_UNSUPPORTED, FAULT == NAMELESS_NODE ? LTC_NONE : (uint32_t)i, why);
  }
  const void* sizes = TAKES_SYMBOLS ? ltc_find_extension(args->ext, LTC_EXTENSION_SYMBOLIC) : NULL;
  if (sizes && ((const ltc_symbolic_sizes*)sizes)->symbol_count >= MOST_SYMBOLS)
    return error(device->plugin, LTC_UNSUPPORTED, "too many symbols");
  ltc_program* made = calloc(1, sizeof *made);
  test_plan* plan = made ? test_plan_create(args->graph, sizes) : NULL;
  if (!plan) {
    free(made);
    return test_out_of_memory(device->plugin);
  }
  made->host = device->plugin->host;
  made->plan = plan;
  if (TAKES_PRECISION) log_allowed(device->plugin->host, args->ext);
  *program = made;
  return NULL;
}

static void program_destroy(ltc_program* program) {
  test_plan_release(program->plan);
  free(program);
}

static ltc_status* compile(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
  ltc_status* refused = refuse_extensions(device->plugin, args->ext);
  if (refused) return refused;
  if (FAULT == SLEEPS_IN_COMPILE) nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
  ltc_executable* made = calloc(1, sizeof *made);
  if (!made) return test_out_of_memory(device->plugin);
  made->device = device;
  made->plan = test_plan_retain(args->program->plan);
  *executable = made;
  return NULL;
}

static void executable_destroy(ltc_executable* executable) {
  struct task* task = test_task_create(executable->device, false);
  if (!task) return;
  task->executable = executable;
  (void)test_submit(executable->device, task, NULL);
}

static void* copy_of(const void* data, size_t count, size_t size) {
  void* copy = calloc(count + 1, size);
  if (copy && count > 0) memcpy(copy, data, count * size);
  return copy;
}

/* The executable's plan for the sizes of this run, one reference; NULL where they are not given, or when out of memory. */
static test_plan* sized_plan(const ltc_execute_args* args) {
  test_plan* plan = args->executable->plan;
  const size_t count = test_plan_symbol_count(plan);
  const void* ext = TAKES_SYMBOLS ? ltc_find_extension(args->ext, LTC_EXTENSION_SYMBOLIC) : NULL;
  const ltc_symbol_values* symbols = ext;
  return (symbols ? symbols->symbol_count : 0) == count ? test_plan_sized(plan, count ? symbols->values : NULL) : NULL;
}

/* Everything that a run needs, or NULL and nothing left behind. Takes the plan's reference. */
static struct task* new_run(ltc_device* device, test_plan* plan, const ltc_execute_args* args) {
  struct task* task = test_task_create(device, true);
  if (!task) {
    test_plan_release(plan);
    return NULL;
  }
  task->plan = plan;
  task->inputs = copy_of(args->inputs, args->input_count, sizeof *task->inputs);
  task->scalars = copy_of(args->scalars, args->scalar_count, sizeof *task->scalars);
  task->outputs = calloc(args->output_count + 1, sizeof *task->outputs);
  bool enough = task->inputs && task->scalars && task->outputs;
  for (size_t i = 0; enough && i < args->output_count; ++i) {
    task->outputs[i] = test_buffer_create(device, test_plan_output_bytes(task->plan, i));
    enough = task->outputs[i] != NULL;
  }
  if (enough) return task;
  for (size_t i = 0; task->outputs && i < args->output_count; ++i) {
    if (task->outputs[i]) test_buffer_free(task->outputs[i]);
  }
  free(task->event);
  test_task_free(task);
  return NULL;
}

static const char* refuse_counts(const test_plan* plan, const ltc_execute_args* args) {
  if (FAULT != COUNTS_WRONG &&
      (args->input_count != test_plan_input_count(plan) || args->scalar_count != test_plan_scalar_count(plan) ||
       args->output_count != test_plan_output_count(plan))) {
    return "a number of inputs, scalars or outputs other than the program's";
  }
  for (size_t i = 0; i < args->input_count; ++i) {
    if (args->inputs[i]->bytes != test_plan_input_bytes(plan, i)) return "an input of another size than the program's";
  }
  return NULL;
}

static ltc_status* execute(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  ltc_status* refused = refuse_extensions(device->plugin, args->ext);
  if (!refused) refused = refuse_lost(device);
  if (refused) return refused;
  if (FAULT == CRASHES) abort();
  if (FAULT == EXITS) exit(0);
  while (FAULT == HANGS) continue;
  if (FAULT == CHANGES_FLOATS) (void)fesetround(FE_DOWNWARD);
  if (FAULT == BAD_BYTES) return error(device->plugin, LTC_INTERNAL, "ferm\xe9 le lundi");
  test_plan* plan = sized_plan(args);
  if (!plan) return error(device->plugin, LTC_INVALID_ARGUMENT, "a number of symbols other than the program's");
  const char* wrong = refuse_counts(plan, args);
  if (wrong) {
    test_plan_release(plan);
    return error(device->plugin, LTC_INVALID_ARGUMENT, wrong);
  }
  struct task* task = new_run(device, plan, args);
  ltc_buffer** made = task ? copy_of(task->outputs, args->output_count, sizeof *made) : NULL;
  if (!made) return test_out_of_memory(device->plugin);
  const char* failed = test_submit(device, task, done); /* the task is gone then, and outputs stay as they are after an error */
  for (size_t i = 0; i < args->output_count; ++i) {
    if (failed) {
      test_buffer_free(made[i]);
    } else {
      outputs[i] = made[i];
    }
  }
  free(made);
  if (failed) return error(device->plugin, test_code_of(failed), failed);
  for (size_t i = 0; args->donate && i < args->input_count; ++i) {
    if (args->donate[i] && FAULT != KEEPS_DONATION) buffer_destroy(args->inputs[i]);
  }
  if (FAULT == SAME_OUTPUT && args->output_count > 1) {
    buffer_destroy(outputs[args->output_count - 1]);
    outputs[args->output_count - 1] = outputs[0];
  }
  if (FAULT == INPUT_AS_OUTPUT) {
    buffer_destroy(outputs[0]);
    outputs[0] = args->inputs[0];
  }
  if (FAULT == SAME_EVENT && *done) *done = test_event_again(device, *done);
  if (FAULT == BAD_OUTPUTS) {
    buffer_destroy(outputs[args->output_count - 1]);
    outputs[args->output_count - 1] = NULL;
  }
  return NULL;
}

static void keep_event(ltc_event* event) { (void)event; }

/* ---- optional slots ---- */

static void plugin_close(ltc_plugin* plugin) { free(plugin); }

static ltc_status* program_text(const ltc_program* program, const ltc_sink* sink) {
  (void)test_plan_write(program->plan, sink);
  return NULL;
}

static ltc_status* memory_stats(ltc_device* device, ltc_memory_stats* stats) {
  pthread_mutex_lock(&device->lock);
  stats->in_use_bytes = device->in_use_bytes;
  stats->peak_bytes = device->peak_bytes;
  pthread_mutex_unlock(&device->lock);
  return NULL;
}

/* ---- the entry ---- */

static const ltc_extension optional = {sizeof(ltc_extension), 78, 1, NULL};
static const ltc_extension precision = {sizeof(ltc_extension), LTC_EXTENSION_PRECISION, 1, NULL};
static const ltc_extension symbolic = {sizeof(ltc_extension), LTC_EXTENSION_SYMBOLIC, 1, NULL};
static const ltc_extension required = {sizeof(ltc_extension), LTC_EXTENSION_REQUIRED | 77, 1, NULL};

#define COMPUTING(slot) (FAULT == MEMORY_ONLY ? NULL : slot)
static const ltc_plugin_api table = {
    FAULT == SHORT_TABLE ? LTC_SIZE_TO(ltc_plugin_api, buffer_create) : LTC_SIZE_TO(ltc_plugin_api, memory_stats),
    FAULT == REQUIRES_EXTENSION   ? &required
    : FAULT == REFUSES_EXTENSIONS ? &optional
    : TAKES_PRECISION             ? &precision
    : TAKES_SYMBOLS               ? &symbolic
                                  : NULL,
    describe,
    device_open,
    test_device_close,
    buffer_create,
    buffer_destroy,
    FAULT == MISSING_SLOT ? NULL : transfer,
    COMPUTING(claims),
    COMPUTING(lower),
    COMPUTING(program_destroy),
    COMPUTING(compile),
    FAULT == HALF_GROUP ? NULL : COMPUTING(executable_destroy),
    COMPUTING(execute),
    IS_ASYNC ? test_event_wait : NULL,
    IS_ASYNC ? (FAULT == KEEPS_EVENTS ? keep_event : test_event_destroy) : NULL,
    plugin_close,
    COMPUTING(program_text),
    NULL, /* executable_save */
    NULL, /* executable_load */
    memory_stats,
};

enum { IS_OLD = FAULT == OLD_ABI || FAULT == WRONG_ABI };
static const ltc_version oldest = {IS_OLD ? 0 : LTC_ABI_MAJOR, 0};
static const ltc_version newest = {IS_OLD ? 0 : LTC_ABI_MAJOR, IS_OLD ? 9 : LTC_ABI_MINOR};

bool LTC_TEST_ENTRY(ltc_entry_args* args);
bool LTC_TEST_ENTRY(ltc_entry_args* args) {
  const bool agrees = ltc_agree(args, oldest, newest);
  if (FAULT == WRONG_ABI) args->agreed = newest;
  if (FAULT != WRONG_ABI && !agrees) {
    args->reason = "update the test plugin";
    return false;
  }
  if (FAULT != TAKES_OPTIONS && !ltc_has_no_options(args)) return false;
  static ltc_plugin never_closed; /* for a host that gets no plugin_close to call */
  const bool closes = FAULT != WRONG_ABI && FAULT != NO_TABLE && FAULT != SHORT_TABLE;
  ltc_plugin* plugin = closes ? calloc(1, sizeof *plugin) : &never_closed;
  if (!plugin) {
    args->reason = "out of host memory";
    return false;
  }
  plugin->host = args->host;
  args->api = FAULT == NO_TABLE ? NULL : &table;
  args->plugin = plugin;
  return true;
}
