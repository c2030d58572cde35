/* A plugin with every slot, all of which refuse, and no device. Written by sdk/manifest/generate.py; do not edit. */
/* clang-format off */
#include "ltc/entry.h"

static const ltc_host_api* host; /* the last host that entered */

static ltc_status* refuse(const char* slot, size_t size) {
  return host->status_create(host->host, LTC_UNSUPPORTED, LTC_NONE, slot, size);
}

static ltc_status* LTC_CALL stub_describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  (void)plugin;
  const ltc_string name = {"stub", 4}, why = {"A stub has no device.", 21};
  info->name = info->version = name;
  info->why_no_device = why;
  return NULL;
}

static ltc_status* LTC_CALL stub_device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  (void)plugin;
  (void)args;
  (void)info;
  (void)device;
  return refuse("device_open", 11);
}

static void LTC_CALL stub_device_close(ltc_device* device) {
  (void)device;
}

static ltc_status* LTC_CALL stub_buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  (void)device;
  (void)args;
  (void)buffer;
  return refuse("buffer_create", 13);
}

static void LTC_CALL stub_buffer_destroy(ltc_buffer* buffer) {
  (void)buffer;
}

static ltc_status* LTC_CALL stub_transfer(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  (void)device;
  (void)args;
  (void)done;
  return refuse("transfer", 8);
}

static ltc_status* LTC_CALL stub_claims(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster) {
  (void)device;
  (void)args;
  (void)cluster;
  return refuse("claims", 6);
}

static ltc_status* LTC_CALL stub_lower(ltc_device* device, const ltc_lower_args* args, ltc_program** program) {
  (void)device;
  (void)args;
  (void)program;
  return refuse("lower", 5);
}

static void LTC_CALL stub_program_destroy(ltc_program* program) {
  (void)program;
}

static ltc_status* LTC_CALL stub_compile(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
  (void)device;
  (void)args;
  (void)executable;
  return refuse("compile", 7);
}

static void LTC_CALL stub_executable_destroy(ltc_executable* executable) {
  (void)executable;
}

static ltc_status* LTC_CALL stub_execute(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  (void)device;
  (void)args;
  (void)outputs;
  (void)done;
  return refuse("execute", 7);
}

static ltc_status* LTC_CALL stub_event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
  (void)event;
  (void)timeout_ns;
  (void)finished;
  return refuse("event_wait", 10);
}

static void LTC_CALL stub_event_destroy(ltc_event* event) {
  (void)event;
}

static void LTC_CALL stub_plugin_close(ltc_plugin* plugin) {
  (void)plugin;
}

static ltc_status* LTC_CALL stub_program_text(const ltc_program* program, const ltc_sink* sink) {
  (void)program;
  (void)sink;
  return refuse("program_text", 12);
}

static ltc_status* LTC_CALL stub_executable_save(const ltc_executable* executable, const ltc_sink* sink) {
  (void)executable;
  (void)sink;
  return refuse("executable_save", 15);
}

static ltc_status* LTC_CALL stub_executable_load(ltc_device* device, const ltc_load_args* args, ltc_executable** executable) {
  (void)device;
  (void)args;
  (void)executable;
  return refuse("executable_load", 15);
}

static ltc_status* LTC_CALL stub_memory_stats(ltc_device* device, ltc_memory_stats* stats) {
  (void)device;
  (void)stats;
  return refuse("memory_stats", 12);
}

static ltc_status* LTC_CALL stub_event_good_outputs(ltc_event* event, size_t output_count, uint8_t* good) {
  (void)event;
  (void)output_count;
  (void)good;
  return refuse("event_good_outputs", 18);
}

static const ltc_plugin_api api = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, event_good_outputs),
    .describe = stub_describe,
    .device_open = stub_device_open,
    .device_close = stub_device_close,
    .buffer_create = stub_buffer_create,
    .buffer_destroy = stub_buffer_destroy,
    .transfer = stub_transfer,
    .claims = stub_claims,
    .lower = stub_lower,
    .program_destroy = stub_program_destroy,
    .compile = stub_compile,
    .executable_destroy = stub_executable_destroy,
    .execute = stub_execute,
    .event_wait = stub_event_wait,
    .event_destroy = stub_event_destroy,
    .plugin_close = stub_plugin_close,
    .program_text = stub_program_text,
    .executable_save = stub_executable_save,
    .executable_load = stub_executable_load,
    .memory_stats = stub_memory_stats,
    .event_good_outputs = stub_event_good_outputs,
};

bool LTC_CALL ltc_plugin_entry(ltc_entry_args* args) {
  const ltc_version version = {LTC_ABI_MAJOR, 0};
  if (!ltc_agree(args, version, version) || !ltc_has_no_options(args)) return false;
  host = args->host;
  args->api = &api;
  return true;
}
