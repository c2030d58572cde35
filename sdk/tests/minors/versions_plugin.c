/* A plugin that uses all that the version of its header has, 1.0 to 1.3: two devices in host memory, neg and gather of F32
 * vectors. */
#include <stdlib.h>
#include <string.h>

#include "ltc/entry.h"
#include "ltc/opset.h"

struct ltc_plugin {
  const ltc_host_api* host;
  uint32_t minor; /* agreed on */
};
struct ltc_device {
  ltc_plugin* plugin;
};
struct ltc_buffer {
  ltc_device* device;
  size_t bytes;
  char data[64];
};
/* Programs and executables are the same here. */
typedef struct code {
  uint32_t is_gather;
  uint32_t count; /* elements */
} code;
struct ltc_program {
  code code;
};
struct ltc_executable {
  code code;
};
struct ltc_event {
  ltc_device* device;
  ltc_code error; /* 0: it went well */
};

static ltc_status* fail(ltc_device* device, ltc_code code, const char* text) {
  const ltc_host_api* host = device->plugin->host;
  return host->status_create(host->host, code, LTC_NONE, text, strlen(text));
}
static ltc_string string(const char* text) {
  ltc_string string;
  string.data = text;
  string.size = strlen(text);
  return string;
}

static ltc_status* LTC_CALL describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  (void)plugin;
  info->name = info->version = string("versions");
  info->device_count = 2;
  return NULL;
}

static ltc_status* LTC_CALL device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info,
                                        ltc_device** device) {
  ltc_device* made = malloc(sizeof *made);
  (void)args;
  made->plugin = plugin;
  info->name = info->fingerprint = string("versions");
  info->dtypes = 1u << LTC_F32 | 1u << LTC_I64;
#if LTC_ABI_MINOR >= 1
  if (plugin->minor >= 1) info->flags |= LTC_DEVICE_WAITS;
#endif
  *device = made;
  return NULL;
}
static void LTC_CALL device_close(ltc_device* device) { free(device); }

static ltc_status* LTC_CALL buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  const ltc_type* type = args->type;
  const size_t bytes = (type->rank ? (size_t)type->sizes[0] : 1) * (type->dtype == LTC_I64 ? 8 : 4);
  if (type->rank > 1 || bytes > sizeof(*buffer)->data) return fail(device, LTC_RESOURCE_EXHAUSTED, "too large");
  *buffer = calloc(1, sizeof **buffer);
  (*buffer)->device = device;
  (*buffer)->bytes = bytes;
  return NULL;
}
static void LTC_CALL buffer_destroy(ltc_buffer* buffer) { free(buffer); }

static ltc_status* LTC_CALL transfer(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  char* here = args->buffer->data + args->offset_bytes;
  (void)device;
  (void)done;
  if (args->direction == LTC_TO_DEVICE) memcpy(here, args->from, args->size_bytes);
  if (args->direction == LTC_FROM_DEVICE) memcpy(args->to, here, args->size_bytes);
  if (args->direction == LTC_ON_DEVICE) memcpy(here, args->source->data + args->source_offset_bytes, args->size_bytes);
  return NULL;
}

static bool is_known(const ltc_graph* graph, const ltc_node* node) {
  const bool is_op = node->op == LTC_OP_ATEN_NEG || node->op == LTC_OP_ATEN_GATHER;
  return is_op && ltc_node_matches(node, ltc_op_operands(node->op)) && graph->types[node->outputs[0]]->rank == 1;
}
static ltc_status* LTC_CALL claims(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster) {
  (void)device;
  for (size_t i = 0; i < args->graph->node_count; ++i) cluster[i] = is_known(args->graph, args->graph->nodes[i]);
  return NULL;
}
static ltc_status* LTC_CALL lower(ltc_device* device, const ltc_lower_args* args, ltc_program** program) {
  const ltc_graph* graph = args->graph;
  if (graph->node_count != 1 || !is_known(graph, graph->nodes[0])) return fail(device, LTC_UNSUPPORTED, "one node");
  *program = malloc(sizeof **program);
  (*program)->code.is_gather = graph->nodes[0]->op == LTC_OP_ATEN_GATHER;
  (*program)->code.count = (uint32_t)graph->types[graph->outputs[0]]->sizes[0];
  return NULL;
}
static void LTC_CALL program_destroy(ltc_program* program) { free(program); }
static ltc_status* LTC_CALL compile(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
  (void)device;
  *executable = malloc(sizeof **executable);
  (*executable)->code = args->program->code;
  return NULL;
}
static void LTC_CALL executable_destroy(ltc_executable* executable) { free(executable); }

static ltc_code compute(code code, ltc_buffer* const* inputs, float* to) {
  const float* from = (const float*)(const void*)inputs[0]->data;
  for (uint32_t i = 0; i < code.count; ++i) {
    int64_t at = i;
    if (code.is_gather) memcpy(&at, inputs[1]->data + i * sizeof at, sizeof at);
    if (at < 0 || (size_t)at >= inputs[0]->bytes / sizeof *from) return LTC_OUT_OF_RANGE;
    to[i] = code.is_gather ? from[at] : -from[at];
  }
  return 0;
}
static ltc_status* LTC_CALL execute(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  ltc_code error = 0;
#if LTC_ABI_MINOR >= 1
  if (LTC_HAS(args, ltc_execute_args, waits)) {
    for (size_t i = 0; i < args->wait_count && !error; ++i) error = args->waits[i]->error;
  }
#endif
  ltc_buffer* made = calloc(1, sizeof *made);
  made->device = device;
  made->bytes = args->executable->code.count * sizeof(float);
  if (!error) error = compute(args->executable->code, args->inputs, (float*)(void*)made->data);
  for (size_t i = 0; args->donate && i < args->input_count; ++i) {
    if (args->donate[i]) free(args->inputs[i]);
  }
  *done = malloc(sizeof **done);
  (*done)->device = device;
  (*done)->error = error;
  outputs[0] = made;
  return NULL;
}

static ltc_status* LTC_CALL event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
  (void)timeout_ns;
  *finished = true;
  return event->error ? fail(event->device, event->error, "the run failed") : NULL;
}
static void LTC_CALL event_destroy(ltc_event* event) { free(event); }
static void LTC_CALL plugin_close(ltc_plugin* plugin) { free(plugin); }

static ltc_status* LTC_CALL executable_save(const ltc_executable* executable, const ltc_sink* sink) {
  sink->write(sink->context, "code", 4);
  sink->write(sink->context, &executable->code, sizeof executable->code);
  return NULL;
}
static bool is_saved(const ltc_load_args* args) { return args->size == 4 + sizeof(code) && memcmp(args->data, "code", 4) == 0; }
static ltc_status* LTC_CALL executable_load(ltc_device* device, const ltc_load_args* args, ltc_executable** executable) {
  if (!is_saved(args)) return fail(device, LTC_DATA_CORRUPT, "not saved by this plugin");
  *executable = malloc(sizeof **executable);
  memcpy(&(*executable)->code, (const char*)args->data + 4, sizeof(code));
  return NULL;
}
#if LTC_ABI_MINOR >= 2
static ltc_status* LTC_CALL buffer_map(ltc_buffer* buffer, void** memory) {
  *memory = buffer->data;
  return NULL;
}
static void LTC_CALL buffer_unmap(ltc_buffer* buffer) { (void)buffer; }
#endif
#if LTC_ABI_MINOR >= 3
static ltc_status* LTC_CALL executable_check(ltc_device* device, const ltc_load_args* args) {
  return is_saved(args) ? NULL : fail(device, LTC_DATA_CORRUPT, "not saved by this plugin");
}
#endif

static const ltc_plugin_api api = {
#if LTC_ABI_MINOR >= 3
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, executable_check),
    .executable_check = executable_check,
#elif LTC_ABI_MINOR >= 2
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, buffer_unmap),
#else
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, executable_load),
#endif
#if LTC_ABI_MINOR >= 2
    .buffer_map = buffer_map,
    .buffer_unmap = buffer_unmap,
#endif
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
    .event_wait = event_wait,
    .event_destroy = event_destroy,
    .plugin_close = plugin_close,
    .executable_save = executable_save,
    .executable_load = executable_load,
};

bool LTC_CALL ltc_plugin_entry(ltc_entry_args* args) {
  const ltc_version oldest = {1, 0}, newest = {1, LTC_ABI_MINOR};
  if (!ltc_agree(args, oldest, newest) || !ltc_has_no_options(args)) return false;
  args->plugin = malloc(sizeof *args->plugin);
  args->plugin->host = args->host;
  args->plugin->minor = args->agreed.minor;
  args->api = &api;
  return true;
}
