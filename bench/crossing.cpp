// The host's part of a call into a plugin: the time beyond the plugin's own function, and the allocations. A plugin that does
// nothing is linked in; the host and the bare function take turns.
//
// usage: ltc_crossing_bench [--check]     --check: 1 where a limit is passed
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "ltc/plugin.hpp"

namespace {

std::atomic<size_t> allocations{0};

}  // namespace

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// ---- the plugin: handles are numbers

struct ltc_plugin {
  const ltc_host_api* host;
};
struct ltc_device {
  ltc_plugin* plugin;
  uintptr_t next = 0x1000;
};

namespace {

using namespace ltc::plugin;

void describe(ltc_plugin*, ltc_plugin_info& info) {
  info.name = info.version = literal("idle");
  info.device_count = 1;
}
void device_open(ltc_plugin* plugin, const ltc_device_args&, ltc_device_info& info, ltc_device*& device) {
  info.name = info.fingerprint = literal("idle");
  info.dtypes = all_dtypes();
  device = new ltc_device{plugin};
}
template <typename Handle>
Handle* next(ltc_device* device) {
  return reinterpret_cast<Handle*>(device->next += 0x40);
}
void buffer_create(ltc_device* device, const ltc_buffer_args&, ltc_buffer*& buffer) { buffer = next<ltc_buffer>(device); }
ltc_status* LTC_CALL transfer(ltc_device*, const ltc_transfer_args*, ltc_event**) { return nullptr; }
ltc_status* LTC_CALL claims(ltc_device*, const ltc_claims_args*, uint32_t*) { return nullptr; }
void lower(ltc_device* device, const ltc_lower_args&, ltc_program*& program) { program = next<ltc_program>(device); }
void compile(ltc_device* device, const ltc_compile_args&, ltc_executable*& made) { made = next<ltc_executable>(device); }
ltc_status* LTC_CALL execute(ltc_device* device, const ltc_execute_args* args, ltc_buffer** outputs, ltc_event** done) {
  for (size_t i = 0; i < args->output_count; ++i) outputs[i] = next<ltc_buffer>(device);
  *done = next<ltc_event>(device);
  return nullptr;
}
ltc_status* LTC_CALL event_wait(ltc_event*, uint64_t, bool* finished) {
  *finished = true;
  return nullptr;
}
template <typename Handle>
void LTC_CALL forget(Handle*) {}

constexpr ltc_plugin_api kApi = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, plugin_close),
    .describe = slot<describe>,
    .device_open = slot<device_open>,
    .device_close = destroy<ltc_device>,
    .buffer_create = slot<buffer_create>,
    .buffer_destroy = forget<ltc_buffer>,
    .transfer = transfer,
    .claims = claims,
    .lower = slot<lower>,
    .program_destroy = forget<ltc_program>,
    .compile = slot<compile>,
    .executable_destroy = forget<ltc_executable>,
    .execute = execute,
    .event_wait = event_wait,
    .event_destroy = forget<ltc_event>,
    .plugin_close = destroy<ltc_plugin>,
};
bool LTC_CALL entry(ltc_entry_args* args) {
  return enter(args, {1, 0}, {1, 0}, kApi, [&] { return new ltc_plugin{args->host}; });
}

const ltc_plugin_api* volatile table = &kApi;  // no compiler knows what is behind it

// ---- the measurement

constexpr double kMargin = 1.25;  // that the noise of a quiet machine needs
constexpr int kBatch = 64, kBatches = 300, kRounds = 31;

// Batches of calls, and after each batch what is not timed.
template <typename Call, typename Between>
double ns_per_call(Call&& call, Between&& between) {
  using Clock = std::chrono::steady_clock;
  Clock::duration time{};
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = Clock::now();
    for (int i = 0; i < kBatch; ++i) call();
    time += Clock::now() - begin;
    between();
  }
  return std::chrono::duration<double, std::nano>(time).count() / (kBatches * kBatch);
}

struct Limits {
  const char* name;
  double ns;
};

// Prints a row; whether it is within the limit. The least disturbed round of each side counts.
template <typename Host, typename Bare, typename Between>
bool compare(const Limits& limits, Host&& host, Bare&& bare, Between&& between) {
  double through = 1e9, direct = 1e9;
  ns_per_call(host, between);
  const size_t before = allocations;
  for (int i = 0; i < kBatch; ++i) host();
  const double allocated = static_cast<double>(allocations - before) / kBatch;
  between();
  for (int round = 0; round < kRounds; ++round) {
    through = std::min(through, ns_per_call(host, between));
    direct = std::min(direct, ns_per_call(bare, [] {}));
  }
  const bool holds = through - direct <= limits.ns * kMargin && allocated == 0;
  std::printf("| %-20s | %7.1f | %7.1f | %7.1f | %5.0f | %6.2f | %s |\n", limits.name, direct, through, through - direct,
              limits.ns, allocated, holds ? "yes" : "no");
  return holds;
}

}  // namespace

int main(int argc, char** argv) {
  const bool checks = argc > 1 && std::strcmp(argv[1], "--check") == 0;
  const auto device = ltc::host::Plugin::enter("idle", entry)->open_device(0);
  ltc_device bare_device{nullptr};
  const int64_t sizes[] = {4};
  auto type = ltc::host::sized<ltc_type>();
  type.dtype = LTC_F32, type.rank = 1, type.sizes = sizes;
  ltc_buffer* const inputs[] = {device->create_buffer(type), device->create_buffer(type)};
  auto graph = ltc::host::sized<ltc_graph>();
  ltc_program* const program = device->lower(graph);
  auto args = ltc::host::sized<ltc_execute_args>();
  args.executable = device->compile(program, 1);
  args.input_count = args.output_count = 2;
  args.inputs = inputs;
  ltc_buffer* outputs[2];
  std::printf("| call                 | direct  | host    | more    | limit | allocs | holds |\n|---|---|---|---|---|---|---|\n");
  std::vector<ltc_event*> events;
  std::vector<ltc_buffer*> made;
  events.reserve(kBatch), made.reserve(2 * kBatch);
  bool holds = compare(
      {"execute", 25},
      [&] {
        events.push_back(device->execute(args, outputs));
        made.insert(made.end(), outputs, outputs + 2);
      },
      [&] {
        ltc_event* event = nullptr;
        (void)table->execute(&bare_device, &args, outputs, &event);
      },
      [&] {
        for (ltc_event* event : events) device->destroy_event(event);
        for (ltc_buffer* buffer : made) device->destroy_buffer(buffer);
        events.clear(), made.clear();
      });
  ltc_buffer* const spare = device->create_buffer(type);  // this plugin forgets nothing
  holds &= compare(
      {"destroy a buffer", 5}, [&] { device->destroy_buffer(spare); }, [&] { table->buffer_destroy(spare); }, [] {});
  ltc_event* const event = device->execute(args, outputs);
  holds &= compare(
      {"query an event", 5}, [&] { (void)device->wait(event, 0); },
      [&] {
        bool finished = false;
        (void)table->event_wait(event, 0, &finished);
      },
      [] {});
  device->destroy_event(event);
  for (ltc_buffer* buffer : {inputs[0], inputs[1], outputs[0], outputs[1]}) device->destroy_buffer(buffer);
  device->destroy_executable(args.executable);
  device->destroy_program(program);
  return checks && !holds;
}
