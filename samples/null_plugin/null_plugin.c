/* The smallest plugin: it holds memory and copies it, and the host computes. */
#include <stdlib.h>
#include <string.h>

#include "ltc/entry.h"

struct ltc_plugin {
  const ltc_host_api* host;
};

struct ltc_device {
  ltc_plugin* plugin;
};

struct ltc_buffer {
  uint64_t bytes;
  char data[];
};

static ltc_string string(const char* text) { return (ltc_string){text, strlen(text)}; }

static ltc_status* error(ltc_plugin* plugin, ltc_code code, const char* text) {
  return plugin->host->status_create(plugin->host->host, code, LTC_NONE, text, strlen(text));
}

static ltc_status* describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  (void)plugin;
  info->name = string("null");
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

/* Bytes of an element by dtype, from BOOL on; the types of half a byte are left out. */
static const uint8_t element_bytes[] = {0, 1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 2, 4, 8, 4, 1, 1, 1, 1, 1};

static ltc_status* device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  if (args->ordinal != 0) return error(plugin, LTC_NOT_FOUND, "there is device 0 only");
  ltc_device* made = malloc(sizeof *made);
  if (!made) return error(plugin, LTC_RESOURCE_EXHAUSTED, "out of memory");
  made->plugin = plugin;
  info->name = string("host memory");
  info->fingerprint = string("null-1");
  for (unsigned dtype = 1; dtype < sizeof element_bytes; ++dtype) info->dtypes |= UINT64_C(1) << dtype;
  *device = made;
  return NULL;
}

static void device_close(ltc_device* device) { free(device); }

static ltc_status* buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  ltc_plugin* plugin = device->plugin;
  const ltc_type* type = args->type;
  uint64_t bytes = type->dtype < sizeof element_bytes ? element_bytes[type->dtype] : 0;
  if (bytes == 0) return error(plugin, LTC_UNSUPPORTED, "a dtype whose elements are no whole bytes");
  for (uint32_t i = 0; i < type->rank; ++i)
    if (__builtin_mul_overflow(bytes, (uint64_t)type->sizes[i], &bytes)) bytes = UINT64_MAX;
  ltc_buffer* made = bytes < PTRDIFF_MAX - sizeof *made ? malloc(sizeof *made + bytes) : NULL;
  if (!made) return error(plugin, LTC_RESOURCE_EXHAUSTED, "out of memory");
  made->bytes = bytes;
  *buffer = made;
  return NULL;
}

static void buffer_destroy(ltc_buffer* buffer) { free(buffer); }

static bool outside(const ltc_buffer* buffer, uint64_t offset, uint64_t bytes) {
  return offset > buffer->bytes || bytes > buffer->bytes - offset;
}

/* The copy is complete on return, so no event is made. */
static ltc_status* transfer(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  (void)done;
  ltc_plugin* plugin = device->plugin;
  if (args->direction < LTC_TO_DEVICE || args->direction > LTC_ON_DEVICE || args->flags)
    return error(plugin, LTC_UNSUPPORTED, "unknown direction or flag");
  const bool on_device = args->direction == LTC_ON_DEVICE;
  if (outside(args->buffer, args->offset_bytes, args->size_bytes) ||
      (on_device && outside(args->source, args->source_offset_bytes, args->size_bytes)))
    return error(plugin, LTC_INVALID_ARGUMENT, "a range outside the buffer");
  char* here = args->buffer->data + args->offset_bytes;
  const void* from = on_device ? args->source->data + args->source_offset_bytes : args->from;
  const bool from_device = args->direction == LTC_FROM_DEVICE;
  if (args->size_bytes > 0) memcpy(from_device ? args->to : here, from_device ? here : from, args->size_bytes);
  return NULL;
}

static void plugin_close(ltc_plugin* plugin) { free(plugin); }

static const ltc_plugin_api api = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, memory_stats),
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .transfer = transfer,
    .plugin_close = plugin_close,
};

bool ltc_plugin_entry(ltc_entry_args* args) {
  const ltc_version spoken = {1, 0};
  if (!ltc_agree(args, spoken, spoken) || !ltc_has_no_options(args)) return false;
  ltc_plugin* plugin = malloc(sizeof *plugin);
  if (!plugin) return false;
  plugin->host = args->host;
  args->api = &api;
  args->plugin = plugin;
  return true;
}
