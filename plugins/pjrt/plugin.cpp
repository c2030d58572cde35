// The function table.
#include <algorithm>
#include <array>
#include <cstdio>

#include "ltc/entry.h"
#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

using plugin::borrowed;
using plugin::guarded;
using plugin::literal;

constexpr plugin::OptionRow kOptions[] = {
    {"library", "", "", "the path of a library of PJRT, or the name of a Python package with one; the first that is installed"},
    {"cpu_devices", "1", "1|2|3|4", "how many of the devices that XLA makes of the CPU are offered"}};

template <typename Body>
ltc_status* on(const ltc_device* device, Body&& body) {
  return guarded(device->plugin->host, body);
}

// Opened at its first use.
const Client& client_of(ltc_plugin* plugin) {
  const std::lock_guard lock(plugin->mutex);
  if (!plugin->client) {
    const size_t cpu_devices = std::stoul(plugin->options["cpu_devices"]);
    plugin->client = std::make_unique<Client>(find_library(plugin->options["library"]), cpu_devices);
  }
  return *plugin->client;
}

ltc_status* describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  return guarded(plugin->host, [&] {
    std::string why_not = "the library of PJRT finds no device";
    try {
      info->device_count = static_cast<uint32_t>(client_of(plugin).devices.size());
    } catch (const Failure& failure) {
      why_not = failure.error().message;
    }
    const std::lock_guard lock(plugin->mutex);
    if (plugin->why_no_device.empty()) plugin->why_no_device = why_not;
    if (info->device_count == 0) info->why_no_device = borrowed(plugin->why_no_device);
    info->name = literal("pjrt");
    info->version = info->build_id = literal("1.0");
    info->licence = literal("Apache-2.0");
    plugin->options.list(*info);
  });
}

ltc_status* device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  return guarded(plugin->host, [&] {
    const Client& client = client_of(plugin);
    const std::string count = std::to_string(client.devices.size());
    if (args->ordinal >= client.devices.size()) {
      throw Failure(LTC_NOT_FOUND, "no device " + std::to_string(args->ordinal) + ", there are " + count);
    }
    const Facts& facts = client.devices[args->ordinal];
    *device = new ltc_device{plugin, client, facts};
    info->name = borrowed(facts.name);
    info->fingerprint = borrowed(facts.fingerprint);
    for (ltc_dtype dtype = 1; dtype < 64; ++dtype) info->dtypes |= uint64_t{element(dtype).text != nullptr} << dtype;
    info->memory_bytes = facts.memory_bytes;
  });
}

void device_close(ltc_device* device) {
  device->queue->drain();
  delete device;
}

ltc_status* buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  const ltc_type& type = *args->type;
  return on(device, [&] { *buffer = make_buffer(device, {type.dtype, {type.sizes, type.sizes + type.rank}}).release(); });
}

// PJRT frees memory and programs behind their last use.
void buffer_destroy(ltc_buffer* buffer) { delete buffer; }
void executable_destroy(ltc_executable* executable) { delete executable; }
void program_destroy(ltc_program* program) { delete program; }
void event_destroy(ltc_event* event) { delete event; }
void plugin_close(ltc_plugin* plugin) { delete plugin; }

ltc_status* transfer_bytes(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  return on(device, [&] { transfer(device, *args, done); });
}

ltc_status* claims(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster) {
  return on(device, [&] { std::ranges::copy(find_claims(*args->graph), cluster); });
}

ltc_status* lower_graph(ltc_device* device, const ltc_lower_args* args, ltc_program** program) {
  return on(device, [&] { *program = new ltc_program{device, lower(*args->graph)}; });
}

ltc_status* compile_program(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
  return on(device, [&] { *executable = compile(device, args->program->lowered); });
}

ltc_status* run(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  return on(device, [&] { execute(device, *args, outputs, done); });
}

ltc_status* event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
  return on(event->device, [&] {
    Queue& queue = *event->device->queue;
    *finished = queue.wait(event->ticket.end, timeout_ns);
    const Outcome error = *finished ? queue.outcome(event->ticket) : Outcome();
    if (error) throw Failure(*error);
  });
}

// A sink that wants no more is no error.
ltc_status* program_text(const ltc_program* program, const ltc_sink* sink) {
  const std::string& text = program->lowered.text;
  return on(program->device, [&] { sink->write(sink->context, text.data(), text.size()); });
}

ltc_status* executable_save(const ltc_executable* executable, const ltc_sink* sink) {
  return on(executable->device, [&] {
    const std::string bytes = save(*executable);
    sink->write(sink->context, bytes.data(), bytes.size());
  });
}

ltc_status* executable_load(ltc_device* device, const ltc_load_args* args, ltc_executable** executable) {
  return on(device, [&] { *executable = load(device, {static_cast<const char*>(args->data), args->size}); });
}

constexpr ltc_plugin_api kApi = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, executable_load),
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .transfer = transfer_bytes,
    .claims = claims,
    .lower = lower_graph,
    .program_destroy = program_destroy,
    .compile = compile_program,
    .executable_destroy = executable_destroy,
    .execute = run,
    .event_wait = event_wait,
    .event_destroy = event_destroy,
    .plugin_close = plugin_close,
    .program_text = program_text,
    .executable_save = executable_save,
    .executable_load = executable_load,
};

}  // namespace
}  // namespace ltc::pjrt

bool ltc_plugin_entry(ltc_entry_args* args) {
  try {
    if (!ltc_agree(args, {1, 0}, {1, 0})) return false;
    args->plugin = new ltc_plugin{.host = args->host, .options{ltc::pjrt::kOptions, *args}};
    args->api = &ltc::pjrt::kApi;
    return true;
  } catch (const std::exception& error) {
    static thread_local std::array<char, 512> reason;
    std::snprintf(reason.data(), reason.size(), "%s", error.what());
    args->reason = reason.data();
    return false;
  }
}
