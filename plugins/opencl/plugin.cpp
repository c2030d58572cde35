// The function table, and the little that is left once memory, recipes and execution are elsewhere.
#include <algorithm>
#include <cstdio>

#include "device.h"
#include "executable.h"
#include "gemm.h"
#include "kernels/dtype.h"
#include "kernels/plan.h"

namespace ltc::opencl {
namespace {

constexpr ltc_version kVersion{1, 0};

// A literal: its bytes live as long as the library.
template <size_t N>
constexpr ltc_string literal(const char (&text)[N]) {
  return {text, N - 1};
}
ltc_string borrowed(const std::string& text) { return {text.c_str(), text.size()}; }

kernels::Options plan_options(const ltc_device& device) { return {{device.facts.fp64}, wants_gemm, kTileColumns}; }

void look_for_devices(ltc_plugin* plugin) {
  std::call_once(plugin->looked, [&] { plugin->devices = find_devices(plugin->why_no_device); });
}

ltc_status* describe(ltc_plugin* plugin, ltc_plugin_info* info) {
  return guarded(plugin->host, [&] {
    look_for_devices(plugin);
    info->name = literal("opencl");
    info->version = literal("0.1.0");
    info->build_id = literal("opencl 0.1.0");
    info->why_no_device = borrowed(plugin->why_no_device);
    info->device_count = static_cast<uint32_t>(plugin->devices.size());
    info->sanitizers = 0;
    info->opset = 0;
  });
}

// There are no settings, so a name that arrives is a mistake that somebody wants to hear about.
void refuse_options(size_t count, const ltc_option* const* options) {
  if (count == 0) return;
  throw Failure(LTC_INVALID_ARGUMENT,
                "unknown option '" + std::string(options[0]->name.data, options[0]->name.size) + "'; there are none");
}

ltc_status* device_open(ltc_plugin* plugin, const ltc_device_args* args, ltc_device_info* info, ltc_device** device) {
  return guarded(plugin->host, [&] {
    check_extensions(args->ext);
    look_for_devices(plugin);
    if (args->ordinal >= plugin->devices.size()) {
      throw Failure(LTC_NOT_FOUND, "no device " + std::to_string(args->ordinal) + ", there are " +
                                       std::to_string(plugin->devices.size()) +
                                       (plugin->why_no_device.empty() ? "" : ": " + plugin->why_no_device));
    }
    refuse_options(args->option_count, args->options);
    const DeviceFacts& facts = plugin->devices[args->ordinal];
    auto opened = std::make_unique<ltc_device>(plugin, facts);
    info->name = borrowed(facts.name);
    info->fingerprint = borrowed(facts.fingerprint_text);
    info->dtypes = held_dtypes(facts);
    info->memory_bytes = facts.memory_bytes;
    info->flags = facts.host_memory ? uint64_t{LTC_DEVICE_HOST_VISIBLE} : 0;
    *device = opened.release();
  });
}

void device_close(ltc_device* device) { delete device; }

ltc_status* buffer_create(ltc_device* device, const ltc_buffer_args* args, ltc_buffer** buffer) {
  return guarded(device->plugin->host, [&] {
    check_extensions(args->ext);
    *buffer = create_buffer(device, type_of(*args->type));
  });
}

void buffer_destroy(ltc_buffer* buffer) { destroy_buffer(buffer); }

ltc_status* transfer_bytes(ltc_device* device, const ltc_transfer_args* args, ltc_event** done) {
  return guarded(device->plugin->host, [&] { transfer(device, *args, done); });
}

// Bits of flags and kinds that are not known are never ignored.
bool knows(const ltc_graph& graph) {
  return std::all_of(graph.params, graph.params + graph.param_count, [](const ltc_param* param) {
    return (param->flags & ~uint32_t{LTC_PARAM_SCALAR | LTC_PARAM_CONSTANT}) == 0;
  });
}

ltc_status* claims(ltc_device* device, const ltc_claims_args* args, uint32_t* cluster) {
  return guarded(device->plugin->host, [&] {
    check_extensions(args->ext);
    const ltc_graph& graph = *args->graph;
    const auto scalars = kernels::scalar_params(graph);
    const bool known = knows(graph);
    for (size_t i = 0; i < graph.node_count; ++i) cluster[i] = known && kernels::can_compute(graph, scalars, *graph.nodes[i]);
  });
}

ltc_status* lower(ltc_device* device, const ltc_lower_args* args, ltc_program** program) {
  return guarded(device->plugin->host, [&] {
    check_extensions(args->ext);
    check_extensions(args->graph->ext);
    const ltc_graph& graph = *args->graph;
    const auto scalars = kernels::scalar_params(graph);
    for (size_t i = 0; i < graph.node_count; ++i) {
      if (knows(graph) && kernels::can_compute(graph, scalars, *graph.nodes[i])) continue;
      const ltc_string& name = graph.nodes[i]->name;
      throw Failure(LTC_UNSUPPORTED, "not in the table of ops in this form: " + std::string(name.data, name.size),
                    static_cast<uint32_t>(i));
    }
    if (!knows(graph)) throw Failure(LTC_UNSUPPORTED, "a param has unknown flags");
    const kernels::Plan plan = kernels::make_plan(graph, plan_options(*device));
    auto made = std::make_unique<ltc_program>(ltc_program{device, make_recipe(plan), plan.fusion.text(plan.graph)});
    for (const Launch& launch : made->recipe.launches) {
      made->text +=
          "\n// " + launch.label + ": " + std::to_string(launch.integers[0]) + " items\n" + made->recipe.sources[launch.source];
    }
    *program = made.release();
  });
}

void program_destroy(ltc_program* program) { delete program; }

ltc_status* compile(ltc_device* device, const ltc_compile_args* args, ltc_executable** executable) {
  return guarded(device->plugin->host, [&] {
    check_extensions(args->ext);
    refuse_options(args->option_count, args->options);
    *executable = new ltc_executable(device, args->program->recipe);
  });
}

void executable_destroy(ltc_executable* executable) { delete executable; }

ltc_status* run(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  return guarded(device->plugin->host, [&] { execute(device, *args, outputs, done); });
}

ltc_status* event_wait(ltc_event* event, uint64_t timeout_ns, bool* finished) {
  return guarded(event->host, [&] { wait(*event, timeout_ns, *finished); });
}

void event_destroy(ltc_event* event) { delete event; }

void plugin_close(ltc_plugin* plugin) { delete plugin; }

// A sink that wants no more is no error.
ltc_status* program_text(const ltc_program* program, const ltc_sink* sink) {
  return guarded(program->device->plugin->host, [&] { sink->write(sink->context, program->text.data(), program->text.size()); });
}

ltc_status* executable_save(const ltc_executable* executable, const ltc_sink* sink) {
  const ltc_device& device = *executable->device;
  return guarded(device.plugin->host, [&] {
    std::vector<std::string> binaries;
    for (const ClProgram& program : executable->programs) binaries.push_back(Programs::binary_of(program.get()));
    const std::string bytes = write_recipe(executable->recipe, binaries, device.facts.fingerprint_text);
    sink->write(sink->context, bytes.data(), bytes.size());
  });
}

ltc_status* executable_load(ltc_device* device, const ltc_load_args* args, ltc_executable** executable) {
  return guarded(device->plugin->host, [&] {
    check_extensions(args->ext);
    std::vector<std::string> binaries;
    const std::span bytes(static_cast<const char*>(args->data), args->size);
    Recipe recipe = read_recipe(bytes, binaries, device->facts.fingerprint_text);
    *executable = new ltc_executable(device, std::move(recipe), binaries);
  });
}

ltc_status* memory_stats(ltc_device* device, ltc_memory_stats* stats) {
  const auto [in_use, peak, cached] = device->pool.statistics();
  stats->in_use_bytes = in_use;
  stats->peak_bytes = peak;
  stats->limit_bytes = device->facts.memory_bytes;
  return nullptr;
}

const ltc_plugin_api kApi = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, memory_stats),
    .describe = describe,
    .device_open = device_open,
    .device_close = device_close,
    .buffer_create = buffer_create,
    .buffer_destroy = buffer_destroy,
    .transfer = transfer_bytes,
    .claims = claims,
    .lower = lower,
    .program_destroy = program_destroy,
    .compile = compile,
    .executable_destroy = executable_destroy,
    .execute = run,
    .event_wait = event_wait,
    .event_destroy = event_destroy,
    .plugin_close = plugin_close,
    .program_text = program_text,
    .executable_save = executable_save,
    .executable_load = executable_load,
    .memory_stats = memory_stats,
};

bool is_older(ltc_version a, ltc_version b) { return a.major != b.major ? a.major < b.major : a.minor < b.minor; }

bool enter(ltc_entry_args* args) {
  const ltc_version oldest = args->oldest, newest = args->newest;
  args->oldest = args->newest = kVersion;
  if (is_older(kVersion, oldest) || is_older(newest, kVersion)) {
    static thread_local char reason[128];
    std::snprintf(reason, sizeof reason, "opencl speaks plugin ABI %u.%u, the host %u.%u to %u.%u", kVersion.major,
                  kVersion.minor, oldest.major, oldest.minor, newest.major, newest.minor);
    args->reason = reason;
    return false;
  }
  args->plugin = new ltc_plugin;
  args->plugin->host = args->host;
  args->api = &kApi;
  args->agreed = kVersion;
  return true;
}

}  // namespace
}  // namespace ltc::opencl

bool ltc_plugin_entry(ltc_entry_args* args) {
  try {
    return ltc::opencl::enter(args);
  } catch (...) {
    args->reason = "opencl cannot start: out of memory";
    return false;
  }
}
