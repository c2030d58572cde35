// The function table.
#include "ltc/entry.h"
#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

using plugin::destroy;
using plugin::slot;

constexpr plugin::OptionRow kOptions[] = {
    {"library", "", "", "the path of a library of PJRT, or the name of a Python package with one; the first that is installed"},
    {"cpu_devices", "1", "1|2|3|4", "how many of the devices that XLA makes of the CPU are offered"}};

// Opened at its first use.
const Client& client_of(ltc_plugin* plugin) {
  const std::lock_guard lock(plugin->mutex);
  if (!plugin->client) {
    const size_t cpu_devices = std::stoul(plugin->options["cpu_devices"]);
    plugin->client = std::make_unique<Client>(find_library(plugin->options["library"]), cpu_devices);
  }
  return *plugin->client;
}

void describe(ltc_plugin* plugin, ltc_plugin_info& info) {
  std::string why_not = "the library of PJRT finds no device";
  try {
    info.device_count = static_cast<uint32_t>(client_of(plugin).devices.size());
  } catch (const Failure& failure) {
    why_not = failure.error().message;
  }
  const std::lock_guard lock(plugin->mutex);
  if (plugin->why_no_device.empty()) plugin->why_no_device = why_not;
  if (info.device_count == 0) info.why_no_device = plugin::borrowed(plugin->why_no_device);
  info.name = plugin::literal("pjrt");
  info.version = info.build_id = plugin::literal("1.0");
  info.licence = plugin::literal("Apache-2.0");
  plugin->options.list(info);
}

void device_open(ltc_plugin* plugin, const ltc_device_args& args, ltc_device_info& info, ltc_device*& device) {
  const Client& client = client_of(plugin);
  plugin::check_ordinal(args, client.devices.size());
  const Facts& facts = client.devices[args.ordinal];
  info.name = plugin::borrowed(facts.name);
  info.fingerprint = plugin::borrowed(facts.fingerprint);
  info.dtypes = plugin::all_dtypes();
  info.memory_bytes = facts.memory_bytes;
  device = new ltc_device{plugin, client, facts};
}

void device_close(ltc_device* device) {
  device->queue->drain();
  delete device;
}

void buffer_create(ltc_device* device, const ltc_buffer_args& args, ltc_buffer*& buffer) {
  const ltc_type& type = *args.type;
  buffer = make_buffer(device, {type.dtype, {type.sizes, type.sizes + type.rank}}).release();
}

void claims(ltc_device*, const ltc_claims_args& args, uint32_t* cluster) { claim(*args.graph, cluster); }

void lower_graph(ltc_device* device, const ltc_lower_args& args, ltc_program*& program) {
  program = new ltc_program{device, lower(*args.graph)};
}

void program_text(const ltc_program* program, const ltc_sink& sink) {
  sink.write(sink.context, program->lowered.text.data(), program->lowered.text.size());  // one that wants no more is no error
}

// PJRT frees memory and programs behind their last use.
constexpr ltc_plugin_api kApi = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, event_good_outputs),
    .describe = slot<describe>,
    .device_open = slot<device_open>,
    .device_close = slot<device_close>,
    .buffer_create = slot<buffer_create>,
    .buffer_destroy = destroy<ltc_buffer>,
    .transfer = slot<transfer>,
    .claims = slot<claims>,
    .lower = slot<lower_graph>,
    .program_destroy = destroy<ltc_program>,
    .compile = slot<compile>,
    .executable_destroy = destroy<ltc_executable>,
    .execute = slot<execute>,
    .event_wait = slot<event_wait>,
    .event_destroy = destroy<ltc_event>,
    .plugin_close = destroy<ltc_plugin>,
    .program_text = slot<program_text>,
    .executable_save = slot<save>,
    .executable_load = slot<load>,
    .event_good_outputs = slot<event_good_outputs>,
};

}  // namespace
}  // namespace ltc::pjrt

bool ltc_plugin_entry(ltc_entry_args* args) {
  return ltc::plugin::enter(args, {1, 0}, {1, 0}, ltc::pjrt::kApi, [&] {
    return new ltc_plugin{.host = args->host, .options{ltc::pjrt::kOptions, *args}};
  });
}
