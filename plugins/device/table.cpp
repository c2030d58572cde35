// The function table, and the little that is left once memory, plans and execution are elsewhere.
#include <algorithm>

#include "device/objects.h"
#include "kernels/fuse/collective.h"
#include "kernels/fuse/import.h"
#include "kernels/plan/planner.h"
#include "ltc/entry.h"
#include "ltc/graph.hpp"
#include "ltc/precision.h"
#include "ltc/profile.h"

namespace ltc::device {
namespace {

using plugin::borrowed;
using plugin::destroy;
using plugin::slot;

// For what needs the device to work.
template <typename Body>
void on_device(ltc_device* device, Body&& body) {
  device->loss.check();
  try {
    body();
  } catch (const Failure& failure) {
    device->loss.note(failure.error());
    throw;
  }
}

const Platform& platform_of(ltc_plugin* plugin) {
  std::call_once(plugin->looked, [&] { plugin->platform = plugin->what.find(plugin->options); });
  return *plugin->platform;
}

ltc_string lasting(const char* text) { return {text, std::char_traits<char>::length(text)}; }

void describe(ltc_plugin* plugin, ltc_plugin_info& info) {
  const Platform& platform = platform_of(plugin);
  info.name = lasting(plugin->what.name);
  info.version = lasting(plugin->what.version);
  info.build_id = lasting(plugin->what.build_id);
  info.why_no_device = borrowed(platform.why_no_device());
  info.device_count = static_cast<uint32_t>(platform.device_count());
  info.sanitizers = plugin::sanitizers();
  info.licence = plugin::literal("Apache-2.0");
  plugin->options.list(info);
}

void device_open(ltc_plugin* plugin, const ltc_device_args& args, ltc_device_info& info, ltc_device*& device) {
  const Platform& platform = platform_of(plugin);
  plugin::check_ordinal(args, platform.device_count(), platform.why_no_device());
  auto opened = std::make_unique<ltc_device>(plugin, plugin->platform->open(args.ordinal));
  const Facts& facts = opened->driver->facts();
  info.name = borrowed(facts.name);
  info.fingerprint = borrowed(facts.fingerprint);
  info.dtypes = held_dtypes(facts);
  info.memory_bytes = facts.memory_bytes;
  info.flags = facts.peer_copies ? LTC_DEVICE_PEER_COPY : 0;
  device = opened.release();
}

void buffer_create(ltc_device* device, const ltc_buffer_args& args, ltc_buffer*& buffer) {
  on_device(device, [&] { buffer = create_buffer(device, type_of(*args.type)); });
}

void transfer_bytes(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  on_device(device, [&] { transfer(device, args, done); });
}

bool can_compute(const Driver& driver, const plugin::Node& node) {
  return kernels::can_compute(node, driver.lowering().options.extras) &&
         (!kernels::is_collective(node) || driver.is_member(kernels::group_of(node)));
}

void claims(ltc_device* device, const ltc_claims_args& args, uint32_t* cluster) {
  const plugin::Graph graph(*args.graph);
  for (size_t i = 0; i < graph.size(); ++i) cluster[i] = can_compute(*device->driver, graph.node(i));
}

// How products may round; nothing where the host does not say.
uint32_t allowed_by(const ltc_extension* ext) {
  const auto* precision = reinterpret_cast<const ltc_precision*>(ltc_find_extension(ext, LTC_EXTENSION_PRECISION));
  return precision ? precision->allowed : 0;
}

std::vector<uint8_t> good_outputs(const plugin::Graph& graph, const std::vector<kernels::Check>& checks) {
  std::vector<bool> may_fail(graph.size());
  for (const kernels::Check& check : checks) may_fail[check.source] = true;
  return plugin::unaffected_outputs(graph, may_fail);
}

void lower(ltc_device* device, const ltc_lower_args& args, ltc_program*& program) {
  const plugin::Graph graph(*args.graph);
  if (!graph.knows_flags()) throw Failure(LTC_UNSUPPORTED, "a param has unknown flags");
  const Lowering& lowering = device->driver->lowering();
  for (size_t i = 0; i < graph.size(); ++i) {
    const plugin::Node node = graph.node(i);
    if (!can_compute(*device->driver, node)) throw node.failure("is not in the table of ops in this form");
  }
  kernels::Options options = lowering.options;
  const uint32_t allowed = allowed_by(args.ext);
  options.rounding = {.products_in_tf32 = (allowed & LTC_PRODUCTS_IN_TF32) != 0,
                      .convolutions_in_tf32 = (allowed & LTC_CONVOLUTIONS_IN_TF32) != 0,
                      .sums_in_f16 = (allowed & LTC_PARTIAL_SUMS_IN_F16) != 0,
                      .sums_in_bf16 = (allowed & LTC_PARTIAL_SUMS_IN_BF16) != 0};
  const kernels::Plan plan = kernels::make_plan(graph.abi, options);
  auto compiled_plan = std::make_shared<CompiledPlan>(compile_plan(plan, lowering));
  compiled_plan->good_outputs = good_outputs(graph, compiled_plan->checks);
  program = new ltc_program{device, compiled_plan, plan.fusion.text(plan.graph) + compiled_plan->text()};
}

ltc_executable* make_executable(ltc_device* device, std::shared_ptr<const CompiledPlan> compiled_plan,
                                std::span<const std::string> binaries) {
  auto loaded_plan = device->driver->load_plan(compiled_plan, binaries);
  auto made =
      std::make_unique<ltc_executable>(ltc_executable{device, std::move(compiled_plan), std::move(loaded_plan), {}, {}, {}});
  if (device->driver->lowering().checks_before_donations) made->checked_launches = made->compiled_plan->checked_launches();
  if (made->checked_launches > 0) made->first_writers = made->compiled_plan->first_writers();
  made->inputs.resize(made->compiled_plan->inputs.size());
  made->outputs.resize(made->compiled_plan->outputs.size());
  made->slots.resize(made->compiled_plan->slots.size());
  return made.release();
}

void compile(ltc_device* device, const ltc_compile_args& args, ltc_executable*& executable) {
  on_device(device, [&] { executable = make_executable(device, args.program->compiled_plan, {}); });
}

void run(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  on_device(device, [&] { execute(device, args, outputs, done); });
}

void event_wait(ltc_event* event, uint64_t timeout_ns, bool& finished) {
  on_device(event->device, [&] { wait(*event, timeout_ns, finished); });
}

void event_good_outputs(ltc_event* event, size_t output_count, uint8_t* good) {
  try {
    (void)event->work->is_over();
  } catch (const Failure& failure) {
    failure.error().tell_good_outputs(output_count, good);
  }
}

// A sink that wants no more is no error.
void program_text(const ltc_program* program, const ltc_sink& sink) {
  sink.write(sink.context, program->text.data(), program->text.size());
}

void executable_save(const ltc_executable* executable, const ltc_sink& sink) {
  const std::string& fingerprint = executable->device->driver->facts().fingerprint;
  const std::string bytes = write_compiled_plan(*executable->compiled_plan, executable->loaded_plan->binaries(), fingerprint);
  sink.write(sink.context, bytes.data(), bytes.size());
}

void executable_load(ltc_device* device, const ltc_load_args& args, ltc_executable*& executable) {
  on_device(device, [&] {
    std::vector<std::string> binaries;
    const std::string_view bytes(static_cast<const char*>(args.data), args.size);
    CompiledPlan compiled_plan = read_compiled_plan(bytes, binaries, device->driver->facts().fingerprint);
    executable = make_executable(device, std::make_shared<const CompiledPlan>(std::move(compiled_plan)), binaries);
  });
}

void memory_stats(ltc_device* device, ltc_memory_stats& stats) {
  const auto [in_use, peak, cached] = device->pool.statistics();
  stats.in_use_bytes = in_use;
  stats.peak_bytes = peak;
  stats.limit_bytes = device->driver->facts().memory_bytes;
}

const ltc_plugin_api kApi = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, event_good_outputs),
    .describe = slot<describe>,
    .device_open = slot<device_open>,
    .device_close = destroy<ltc_device>,
    .buffer_create = slot<buffer_create>,
    .buffer_destroy = destroy_buffer,
    .transfer = slot<transfer_bytes>,
    .claims = slot<claims>,
    .lower = slot<lower>,
    .program_destroy = destroy<ltc_program>,
    .compile = slot<compile>,
    .executable_destroy = destroy<ltc_executable>,
    .execute = slot<run>,
    .event_wait = slot<event_wait>,
    .event_destroy = destroy<ltc_event>,
    .plugin_close = destroy<ltc_plugin>,
    .program_text = slot<program_text>,
    .executable_save = slot<executable_save>,
    .executable_load = slot<executable_load>,
    .memory_stats = slot<memory_stats>,
    .event_good_outputs = slot<event_good_outputs>,
};

void group_create(ltc_device* device, const ltc_group_args& args, ltc_group*& group) {
  on_device(device, [&] { group = new ltc_group{device->driver->join(args)}; });
}

void group_abort(ltc_group* group) { group->group->abort(); }

const ltc_extension kProfile{sizeof(ltc_extension), LTC_EXTENSION_PROFILE, 1, nullptr};
const ltc_extension kPrecision{sizeof(ltc_extension), LTC_EXTENSION_PRECISION, 1, &kProfile};
const ltc_collectives kCollectives{
    {sizeof(ltc_collectives), LTC_EXTENSION_COLLECTIVE, 1, &kPrecision}, slot<group_create>, group_abort, destroy<ltc_group>};
ltc_plugin_api api_with(const ltc_extension& list) {
  ltc_plugin_api api = kApi;
  api.ext = &list;
  return api;
}
const ltc_plugin_api kPlainApi = api_with(kProfile), kRoundingApi = api_with(kPrecision),
                     kCollectiveApi = api_with(kCollectives.head);

const ltc_plugin_api& api_of(const Plugin& plugin) {
  return plugin.has_collectives ? kCollectiveApi : plugin.rounds ? kRoundingApi : kPlainApi;
}

}  // namespace

bool enter(ltc_entry_args* args, const Plugin& plugin) noexcept {
  return plugin::enter(args, {1, 0}, {1, 0}, api_of(plugin), [&] {
    return new ltc_plugin{.host = args->host, .what = plugin, .options{plugin.options, *args}};
  });
}

}  // namespace ltc::device
