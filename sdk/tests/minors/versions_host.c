/* A host that uses all that the version of its header has, 1.0 to 1.3, as far as a plugin agrees.
 * usage: versions_host PLUGIN MINOR     MINOR: the newest that the plugin was written for. Says what was used; 1 after a failure.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ltc/entry.h"
#include "ltc/opset.h"

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "line %d: %s does not hold; %s\n", __LINE__, #condition, last_message); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

struct ltc_status {
  ltc_code code;
};
static char last_message[256] = "no error yet";
static size_t statuses; /* alive */

static ltc_status* LTC_CALL status_create(void* host, ltc_code code, uint32_t node, const char* message, size_t size) {
  ltc_status* status = malloc(sizeof *status);
  (void)host;
  (void)node;
  status->code = code;
  snprintf(last_message, sizeof last_message, "%.*s", (int)size, message);
  ++statuses;
  return status;
}
static ltc_code LTC_CALL status_code(const ltc_status* status) { return status ? status->code : 0; }
static void LTC_CALL status_destroy(ltc_status* status) {
  if (status) --statuses;
  free(status);
}
static void LTC_CALL write_log(void* host, int32_t level, const char* message, size_t size) {
  (void)host;
  printf("log %d: %.*s\n", (int)level, (int)size, message);
}
static bool LTC_CALL log_enabled(void* host, int32_t level) { return !host && level >= LTC_LOG_WARN; }
static bool LTC_CALL cache_find(void* host, const ltc_string* key, const ltc_sink* value) { return host && key && value; }
static void LTC_CALL cache_insert(void* host, const ltc_string* key, const ltc_string* about, const ltc_string* value) {
  (void)host;
  (void)key;
  (void)about;
  (void)value;
}
static bool LTC_CALL is_awaited(void* host) { return !host; }

static const ltc_host_api host_api = {LTC_SIZE_TO(ltc_host_api, is_awaited),
                                      NULL,
                                      NULL,
                                      status_create,
                                      status_code,
                                      status_destroy,
                                      write_log,
                                      log_enabled,
                                      cache_find,
                                      cache_insert,
                                      is_awaited};

static const ltc_plugin_api* api;
static uint32_t minor; /* agreed on */
/* Whether a slot was agreed on and is set. */
#define AGREED(since, slot) (minor >= (since) && LTC_HAS(api, ltc_plugin_api, slot) && api->slot)

/* The code of a status, which ends. */
static ltc_code code_of(ltc_status* status) {
  const ltc_code code = status_code(status);
  status_destroy(status);
  return code;
}
static ltc_code result_of(ltc_event* event) {
  bool finished = false;
  if (!event) return 0;
  const ltc_code code = code_of(api->event_wait(event, LTC_FOREVER, &finished));
  CHECK(finished);
  api->event_destroy(event);
  return code;
}

static const int64_t kSizes[] = {4};
static const ltc_type f32 = {LTC_SIZE_TO(ltc_type, sizes), LTC_F32, 1, kSizes},
                      i64 = {LTC_SIZE_TO(ltc_type, sizes), LTC_I64, 1, kSizes};

static ltc_buffer* make(ltc_device* device, const ltc_type* type, const void* values, size_t bytes) {
  const ltc_buffer_args args = {LTC_SIZE_TO(ltc_buffer_args, type), NULL, type};
  ltc_transfer_args copy;
  ltc_buffer* buffer = NULL;
  ltc_event* done = NULL;
  CHECK(code_of(api->buffer_create(device, &args, &buffer)) == 0 && buffer);
  memset(&copy, 0, sizeof copy);
  copy.struct_size = LTC_SIZE_TO(ltc_transfer_args, source_offset_bytes);
  copy.direction = LTC_TO_DEVICE;
  copy.buffer = buffer;
  copy.size_bytes = bytes;
  copy.from = values;
  CHECK(code_of(api->transfer(device, &copy, &done)) == 0 && result_of(done) == 0);
  return buffer;
}
static void expect(ltc_device* device, ltc_buffer* buffer, float a, float b, float c, float d) {
  const float expected[] = {a, b, c, d};
  float values[4] = {0};
  ltc_transfer_args copy;
  ltc_event* done = NULL;
  memset(&copy, 0, sizeof copy);
  copy.struct_size = LTC_SIZE_TO(ltc_transfer_args, source_offset_bytes);
  copy.direction = LTC_FROM_DEVICE;
  copy.buffer = buffer;
  copy.size_bytes = sizeof values;
  copy.to = values;
  CHECK(code_of(api->transfer(device, &copy, &done)) == 0 && result_of(done) == 0);
  CHECK(memcmp(values, expected, sizeof values) == 0);
}

/* An executable of one op on vectors of 4; NULL where the plugin claims no such node. */
static ltc_executable* compile(ltc_device* device, uint32_t op, const char* name) {
  const bool is_gather = op == LTC_OP_ATEN_GATHER;
  const int64_t dim = 0;
  const uint32_t of_neg[] = {0}, of_gather[] = {0, 1}, output[] = {2};
  const ltc_type* const types[] = {&f32, &i64, &f32};
  const ltc_param first = {LTC_SIZE_TO(ltc_param, alias_output), 0, 0, LTC_NONE};
  const ltc_param second = {LTC_SIZE_TO(ltc_param, alias_output), 1, 0, LTC_NONE};
  const ltc_param* const params[] = {&first, &second};
  const ltc_string dim_name = {"dim", 3}, none = {NULL, 0}, op_name = {name, strlen(name)};
  const ltc_attr attr = {LTC_SIZE_TO(ltc_attr, value), dim_name, LTC_ATTR_INT, 1, {&dim}};
  const ltc_attr* const attrs[] = {&attr};
  const ltc_node node = {LTC_SIZE_TO(ltc_node, location),
                         op,
                         op_name,
                         is_gather ? 2 : 1,
                         is_gather ? of_gather : of_neg,
                         1,
                         output,
                         is_gather,
                         attrs,
                         none};
  const ltc_node* const nodes[] = {&node};
  const ltc_graph graph = {LTC_SIZE_TO(ltc_graph, outputs), NULL, 3, types, is_gather ? 2 : 1, params, 1, nodes, 1, output};
  const ltc_claims_args claims = {LTC_SIZE_TO(ltc_claims_args, graph), NULL, &graph};
  const ltc_lower_args lower = {LTC_SIZE_TO(ltc_lower_args, graph), NULL, &graph};
  ltc_program* program = NULL;
  ltc_executable* executable = NULL;
  uint32_t cluster = 0;
  if (!api->claims) return NULL;
  CHECK(code_of(api->claims(device, &claims, &cluster)) == 0);
  if (!cluster) return NULL;
  CHECK(code_of(api->lower(device, &lower, &program)) == 0 && program);
  const ltc_compile_args args = {LTC_SIZE_TO(ltc_compile_args, effort), NULL, program, 1};
  CHECK(code_of(api->compile(device, &args, &executable)) == 0 && executable);
  api->program_destroy(program);
  return executable;
}

/* A run of one output. `wait`, an event of another device, may be NULL. */
static ltc_buffer* run(ltc_device* device, ltc_executable* executable, ltc_buffer** inputs, size_t count, ltc_event* wait,
                       ltc_event** done) {
  ltc_buffer* output = NULL;
  ltc_execute_args args;
  memset(&args, 0, sizeof args);
  args.struct_size = LTC_SIZE_TO(ltc_execute_args, run_id);
  args.executable = executable;
  args.input_count = count;
  args.inputs = inputs;
  args.output_count = 1;
#if LTC_ABI_MINOR >= 1
  args.struct_size = LTC_SIZE_TO(ltc_execute_args, waits);
  args.wait_count = wait ? 1 : 0;
  args.waits = wait ? &wait : NULL;
#else
  CHECK(!wait);
#endif
  CHECK(code_of(api->execute(device, &args, &output, done)) == 0 && output);
  return output;
}

static void compute(ltc_device* device) {
  const float values[] = {1, 2, 3, 4};
  ltc_executable* neg = compile(device, LTC_OP_ATEN_NEG, "aten::neg");
  ltc_event* done = NULL;
  if (!neg) return;
  ltc_buffer* input = make(device, &f32, values, sizeof values);
  ltc_buffer* output = run(device, neg, &input, 1, NULL, &done);
  CHECK(result_of(done) == 0);
  expect(device, output, -1, -2, -3, -4);
  expect(device, input, 1, 2, 3, 4);
  api->buffer_destroy(output);
  api->buffer_destroy(input);
  api->executable_destroy(neg);
  printf(" compute");
}

#if LTC_ABI_MINOR >= 1
/* 1.1: a run waits for one of another device, and fails with its error. */
static void wait_lists(ltc_device* one, ltc_device* other) {
  const float values[] = {1, 2, 3, 4};
  const int64_t good[] = {3, 2, 1, 0}, bad[] = {3, 2, 1, 4};
  ltc_executable *gather = compile(one, LTC_OP_ATEN_GATHER, "aten::gather"), *neg = compile(other, LTC_OP_ATEN_NEG, "aten::neg");
  for (int is_bad = 0; gather && neg && is_bad < 2; ++is_bad) {
    ltc_event *first = NULL, *second = NULL;
    ltc_buffer* inputs[] = {make(one, &f32, values, sizeof values), make(one, &i64, is_bad ? bad : good, sizeof bad)};
    ltc_buffer* input = make(other, &f32, values, sizeof values);
    ltc_buffer* gathered = run(one, gather, inputs, 2, NULL, &first);
    ltc_buffer* negated = run(other, neg, &input, 1, first, &second);
    CHECK(result_of(first) == (is_bad ? LTC_OUT_OF_RANGE : 0));
    CHECK(result_of(second) == (is_bad ? LTC_OUT_OF_RANGE : 0));
    if (!is_bad) expect(other, negated, -1, -2, -3, -4);
    ltc_buffer* const ended[] = {inputs[0], inputs[1], input, gathered, negated};
    for (size_t i = 0; i < 5; ++i) api->buffer_destroy(ended[i]);
  }
  if (gather) api->executable_destroy(gather);
  if (neg) api->executable_destroy(neg);
  printf(" waits");
}
#endif

#if LTC_ABI_MINOR >= 2
/* 1.2: the host reads and writes a buffer in place. */
static void mapping(ltc_device* device) {
  const float values[] = {1, 2, 3, 4};
  ltc_buffer* buffer = make(device, &f32, values, sizeof values);
  void* memory = NULL;
  CHECK(code_of(api->buffer_map(buffer, &memory)) == 0 && memcmp(memory, values, sizeof values) == 0);
  *(float*)memory = 5;
  api->buffer_unmap(buffer);
  expect(device, buffer, 5, 2, 3, 4);
  api->buffer_destroy(buffer);
  printf(" map");
}
#endif

typedef struct bytes {
  size_t size;
  char data[1 << 16];
} bytes;
static bool LTC_CALL append(void* to, const void* data, size_t size) {
  bytes* all = to;
  if (size > sizeof all->data - all->size) return false;
  memcpy(all->data + all->size, data, size);
  all->size += size;
  return true;
}
static ltc_code load(ltc_device* device, const bytes* saved, ltc_executable** executable) {
  void* memory = aligned_alloc(64, 1 << 16);
  const ltc_load_args args = {LTC_SIZE_TO(ltc_load_args, size), NULL, memory, saved->size};
  memcpy(memory, saved->data, saved->size);
  const ltc_code code = code_of(api->executable_load(device, &args, executable));
#if LTC_ABI_MINOR >= 3 /* 1.3: a check says the same without loading */
  if (AGREED(3, executable_check)) {
    CHECK(code_of(api->executable_check(device, &args)) == code);
    printf(" check");
  }
#endif
  free(memory);
  return code;
}
static void saving(ltc_device* device) {
  static bytes saved;
  const ltc_sink sink = {&saved, append};
  ltc_executable *neg = compile(device, LTC_OP_ATEN_NEG, "aten::neg"), *loaded = NULL;
  if (!neg) return;
  saved.size = 0;
  CHECK(code_of(api->executable_save(neg, &sink)) == 0 && saved.size > 0);
  CHECK(load(device, &saved, &loaded) == 0 && loaded);
  api->executable_destroy(loaded);
  saved.data[0] ^= 1;
  CHECK(load(device, &saved, &loaded) != 0);
  api->executable_destroy(neg);
  printf(" save");
}

int main(int argc, char** argv) {
  const uint32_t newest = LTC_ABI_MINOR, plugin_minor = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
  void* library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) return fprintf(stderr, "usage: versions_host PLUGIN MINOR; %s\n", argc > 2 ? dlerror() : ""), 2;
  union {
    void* object;
    bool(LTC_CALL* function)(ltc_entry_args*);
  } entry;
  entry.object = dlsym(library, "ltc_plugin_entry");
  ltc_entry_args args;
  memset(&args, 0, sizeof args);
  args.struct_size = LTC_SIZE_TO(ltc_entry_args, options);
  args.host = &host_api;
  args.oldest.major = args.newest.major = 1;
  args.newest.minor = newest;
  CHECK(entry.object && entry.function(&args));
  api = args.api;
  minor = args.agreed.minor;
  CHECK(args.agreed.major == 1 && minor == (plugin_minor < newest ? plugin_minor : newest));
  ltc_plugin_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = LTC_SIZE_TO(ltc_plugin_info, options);
  CHECK(code_of(api->describe(args.plugin, &info)) == 0 && info.device_count > 0);
  ltc_device* devices[2] = {NULL, NULL};
  const uint32_t count = info.device_count < 2 ? info.device_count : 2;
  uint64_t flags = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ltc_device_args device_args = {LTC_SIZE_TO(ltc_device_args, ordinal), NULL, i};
    ltc_device_info device_info;
    memset(&device_info, 0, sizeof device_info);
    device_info.struct_size = LTC_SIZE_TO(ltc_device_info, flags);
    CHECK(code_of(api->device_open(args.plugin, &device_args, &device_info, &devices[i])) == 0 && devices[i]);
    flags = device_info.flags;
  }
  printf("host 1.%u, plugin 1.%u, agreed 1.%u:", (unsigned)newest, (unsigned)plugin_minor, (unsigned)minor);
  CHECK(minor >= 1 || flags < 4); /* no flag that is newer than what was agreed on */
  compute(devices[0]);
  if (LTC_HAS(api, ltc_plugin_api, executable_load) && api->executable_save && api->executable_load) saving(devices[0]);
#if LTC_ABI_MINOR >= 1
  if (minor >= 1 && (flags & LTC_DEVICE_WAITS)) wait_lists(devices[0], devices[1]);
#endif
#if LTC_ABI_MINOR >= 2
  if (AGREED(2, buffer_map)) mapping(devices[0]);
#endif
  for (uint32_t i = 0; i < count; ++i) api->device_close(devices[i]);
  if (LTC_HAS(api, ltc_plugin_api, plugin_close) && api->plugin_close) api->plugin_close(args.plugin);
  CHECK(statuses == 0);
  printf("\n");
  return 0;
}
