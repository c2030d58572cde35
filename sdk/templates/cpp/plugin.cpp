// The plugin @NAME@: it holds memory and copies it, and the host computes.
#include "ltc/plugin.hpp"

#include <memory>

using namespace ltc::plugin;

struct ltc_plugin {
  const ltc_host_api* host;
};
struct ltc_device {
  ltc_plugin* plugin;
};
struct ltc_buffer {
  ltc_device* device;
  uint64_t bytes;
  std::unique_ptr<char[]> data = std::make_unique_for_overwrite<char[]>(bytes);
};

namespace {

void describe(ltc_plugin*, ltc_plugin_info& info) {
  info.name = literal("@NAME@");
  info.version = literal("0.1");
  info.device_count = 1;
  info.sanitizers = sanitizers();
}

void device_open(ltc_plugin* plugin, const ltc_device_args& args, ltc_device_info& info, ltc_device*& device) {
  check_ordinal(args, 1);
  info.name = literal("host memory");
  info.fingerprint = literal("@NAME@-1");
  info.dtypes = all_dtypes();
  device = new ltc_device{plugin};
}

void buffer_create(ltc_device* device, const ltc_buffer_args& args, ltc_buffer*& buffer) {
  buffer = new ltc_buffer{device, bytes_of(*args.type)};
}

void transfer(ltc_device*, const ltc_transfer_args& args, ltc_event**) {
  // The copy is complete on return, so no event is made.
  copy_of(args, [](ltc_buffer& buffer) { return std::span(buffer.data.get(), buffer.bytes); })();
}

const ltc_plugin_api api = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, memory_stats),
    .describe = slot<describe>,
    .device_open = slot<device_open>,
    .device_close = destroy<ltc_device>,
    .buffer_create = slot<buffer_create>,
    .buffer_destroy = destroy<ltc_buffer>,
    .transfer = slot<transfer>,
    .plugin_close = destroy<ltc_plugin>,
};

}  // namespace

bool ltc_plugin_entry(ltc_entry_args* args) {
  return enter(args, {1, 0}, {1, 0}, api, [&] {
    refuse_options(*args);
    return new ltc_plugin{args->host};
  });
}
