#include "core/host/validation/testing/fake.h"

namespace ltc::host::validation {
namespace {

constexpr ltc_string text(const char* data, size_t size) { return {data, size}; }

ltc_status* describe(ltc_plugin*, ltc_plugin_info* info) {
  info->name = text("fake", 4);
  info->device_count = 2;
  return nullptr;
}
ltc_status* device_open(ltc_plugin*, const ltc_device_args*, ltc_device_info* info, ltc_device** device) {
  info->name = text("a device", 8);
  info->dtypes = 1u << LTC_F32 | 1u << LTC_I64;
  info->flags = LTC_DEVICE_PEER_COPY;
  *device = fresh<ltc_device>();
  return nullptr;
}
ltc_status* buffer_create(ltc_device*, const ltc_buffer_args*, ltc_buffer** buffer) {
  *buffer = fresh<ltc_buffer>();
  return nullptr;
}
ltc_status* transfer(ltc_device*, const ltc_transfer_args*, ltc_event** done) {
  if (Fake::offered && done) *done = fresh<ltc_event>();
  return nullptr;
}
ltc_status* claims(ltc_device*, const ltc_claims_args* args, uint32_t* cluster) {
  for (size_t i = 0; i < args->graph->node_count; ++i) cluster[i] = 1;
  return nullptr;
}
ltc_status* lower(ltc_device*, const ltc_lower_args*, ltc_program** program) {
  *program = fresh<ltc_program>();
  return nullptr;
}
ltc_status* compile(ltc_device*, const ltc_compile_args*, ltc_executable** executable) {
  *executable = fresh<ltc_executable>();
  return nullptr;
}
ltc_status* execute(ltc_device*, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  for (size_t i = 0; i < args->output_count; ++i) outputs[i] = fresh<ltc_buffer>();
  *done = fresh<ltc_event>();
  return nullptr;
}
ltc_status* event_wait(ltc_event*, uint64_t, bool* finished) {
  *finished = true;
  return nullptr;
}
ltc_status* program_text(const ltc_program*, const ltc_sink* sink) {
  sink->write(sink->context, "text", 4);
  return nullptr;
}
ltc_status* executable_save(const ltc_executable*, const ltc_sink* sink) {
  sink->write(sink->context, "bytes", 5);
  return nullptr;
}
ltc_status* executable_load(ltc_device*, const ltc_load_args*, ltc_executable** executable) {
  *executable = fresh<ltc_executable>();
  return nullptr;
}
ltc_status* memory_stats(ltc_device*, ltc_memory_stats* stats) {
  stats->in_use_bytes = 12;
  return nullptr;
}
ltc_status* event_good_outputs(ltc_event*, size_t output_count, uint8_t* good) {
  for (size_t i = 0; i < output_count; ++i) good[i] = 1;
  return nullptr;
}

constexpr float kFloats[3] = {1, 2, 3};

}  // namespace

ltc_plugin_api correct_slots() {
  auto api = sized<ltc_plugin_api>();
  api.describe = describe;
  api.device_open = device_open;
  api.device_close = [](ltc_device*) {};
  api.buffer_create = buffer_create;
  api.buffer_destroy = [](ltc_buffer*) {};
  api.transfer = transfer;
  api.claims = claims;
  api.lower = lower;
  api.program_destroy = [](ltc_program*) {};
  api.compile = compile;
  api.executable_destroy = [](ltc_executable*) {};
  api.execute = execute;
  api.event_wait = event_wait;
  api.event_destroy = [](ltc_event*) {};
  api.plugin_close = [](ltc_plugin*) {};
  api.program_text = program_text;
  api.executable_save = executable_save;
  api.executable_load = executable_load;
  api.memory_stats = memory_stats;
  api.event_good_outputs = event_good_outputs;
  return api;
}

void Fake::enter() {
  auto args = sized<ltc_entry_args>();
  args.oldest = args.newest = {1, 0};
  args.agreed = agreed;
  args.api = &api;
  layer.install(args, {1, 0}, {1, 0});
  slots = args.api;
  plugin = args.plugin;
}

bool Fake::took(ltc_status* status) {
  host.table()->status_destroy(status);
  return status == nullptr;
}

ltc_device* Fake::open() {
  if (!slots) enter();
  auto args = sized<ltc_device_args>();
  auto info = sized<ltc_device_info>();
  ltc_device* device = nullptr;
  took(slots->device_open(plugin, &args, &info, &device));
  return device;
}

ltc_buffer* Fake::buffer(ltc_device* device, std::vector<int64_t> sizes, ltc_dtype dtype) {
  sizes.reserve(1);
  auto type = sized<ltc_type>();
  type.dtype = dtype;
  type.rank = static_cast<uint32_t>(sizes.size());
  type.sizes = sizes.data();
  auto args = sized<ltc_buffer_args>();
  args.type = &type;
  ltc_buffer* buffer = nullptr;
  took(slots->buffer_create(device, &args, &buffer));
  return buffer;
}

bool Fake::transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  return took(slots->transfer(device, &args, done));
}

ltc_event* Fake::upload(ltc_device* device, ltc_buffer* buffer) {
  ltc_event* done = nullptr;
  transfer(device, upload_of(buffer), &done);
  return done;
}

ltc_program* Fake::lower(ltc_device* device, const ltc_graph& graph, const ltc_extension* ext) {
  auto args = sized<ltc_lower_args>();
  args.graph = &graph;
  args.ext = ext;
  ltc_program* program = nullptr;
  took(slots->lower(device, &args, &program));
  return program;
}

ltc_executable* Fake::compile(ltc_device* device, const ltc_graph& graph, const ltc_extension* ext) {
  auto args = sized<ltc_compile_args>();
  args.program = lower(device, graph, ext);
  ltc_executable* executable = nullptr;
  took(slots->compile(device, &args, &executable));
  return executable;
}

bool Fake::claim(ltc_device* device, const ltc_graph& graph) {
  auto args = sized<ltc_claims_args>();
  args.graph = &graph;
  std::vector<uint32_t> cluster(graph.node_count);
  return took(slots->claims(device, &args, cluster.data()));
}

ltc_transfer_args upload_of(ltc_buffer* buffer) {
  auto args = sized<ltc_transfer_args>();
  args.direction = LTC_TO_DEVICE;
  args.buffer = buffer;
  args.size_bytes = sizeof kFloats;
  args.from = kFloats;
  return args;
}

testing::CGraph scaled() {
  testing::CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {3}, 0, 0), s = graph.scalar(LTC_F64);
  const uint32_t product = graph.node("aten::mul.Tensor", {x, s}, LTC_F32, {3});
  graph.output(graph.node("aten::relu", {product}, LTC_F32, {3}));
  return graph;
}

FakeRun::FakeRun(Fake& host) : fake(host), device(host.open()), input(host.buffer(device)) {
  testing::CGraph graph = scaled();
  args.executable = fake.compile(device, graph.get());
  args.input_count = 1;
  args.inputs = &input;
  args.scalar_count = 1;
  args.scalars = &scalar;
  args.output_count = 1;
}

bool FakeRun::wait(uint64_t timeout_ns) {
  bool finished = false;
  fake.took(fake.slots->event_wait(done, timeout_ns, &finished));
  return finished;
}

}  // namespace ltc::host::validation
