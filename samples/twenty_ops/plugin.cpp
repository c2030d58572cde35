// The slots of the ABI. The loops are synchronous; a WorkQueue makes the plugin asynchronous.
#include "compiler.h"
#include "ltc/queue.hpp"

using namespace ltc::plugin;
using PlanRef = std::shared_ptr<const twenty_ops::Plan>;

struct ltc_plugin {
  const ltc_host_api* host;
};
struct ltc_device {
  ltc_plugin* plugin;
  WorkQueue queue{plugin->host};
};
struct ltc_buffer {
  ltc_device* device;
  twenty_ops::Value value;
  std::unique_ptr<char[]> data = std::make_unique_for_overwrite<char[]>(value.bytes);
};
struct ltc_program {
  PlanRef plan;
};
struct ltc_executable {
  ltc_device* device;
  PlanRef plan;
};

namespace {

void describe(ltc_plugin*, ltc_plugin_info& info) {
  info.name = literal("twenty_ops");
  info.version = literal("1.0");
  info.device_count = 1;
  info.sanitizers = sanitizers();
}

void device_open(ltc_plugin* plugin, const ltc_device_args& args, ltc_device_info& info, ltc_device*& device) {
  check_ordinal(args, 1);
  device = new ltc_device{plugin};
  info.name = literal("host memory");
  info.fingerprint = literal("twenty_ops-1");
  info.dtypes = all_dtypes();
}

void buffer_create(ltc_device* device, const ltc_buffer_args& args, ltc_buffer*& buffer) {
  buffer = new ltc_buffer{device, {args.type->dtype, bytes_of(*args.type)}};
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event*& done) {
  const auto memory = [](ltc_buffer& buffer) { return std::span(buffer.data.get(), buffer.value.bytes); };
  done = device->queue.submit(copy_of(args, memory));
}

void claims(ltc_device*, const ltc_claims_args& args, uint32_t* cluster) { twenty_ops::ops.claim(*args.graph, cluster); }

void lower(ltc_device*, const ltc_lower_args& args, ltc_program*& program) {
  program = new ltc_program{std::make_shared<const twenty_ops::Plan>(*args.graph)};
}

void compile(ltc_device* device, const ltc_compile_args& args, ltc_executable*& executable) {
  executable = new ltc_executable{device, args.program->plan};
}

void check(const twenty_ops::Plan& plan, const ltc_execute_args& args) {
  check_counts(args, plan.inputs.size(), plan.scalars.size(), plan.outputs.size());
  for (size_t i = 0; i < args.input_count; ++i) {
    const auto &given = args.inputs[i]->value, &wanted = plan.values[plan.inputs[i]];
    if (given.dtype == wanted.dtype && given.bytes == wanted.bytes) continue;
    throw Failure(LTC_INVALID_ARGUMENT, "[execute] input " + std::to_string(i) + " is of another type than the graph's");
  }
}

void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event*& done) {
  const PlanRef plan = args.executable->plan;
  check(*plan, args);
  std::vector<char*> memory(plan->values.size());
  for (size_t i = 0; i < args.input_count; ++i) memory[plan->inputs[i]] = args.inputs[i]->data.get();
  const auto scalars = std::make_shared<std::vector<float>>(args.scalar_count);
  for (size_t i = 0; i < args.scalar_count; ++i) {
    const bool is_float = plan->values[plan->scalars[i]].dtype == LTC_F64;
    (*scalars)[i] = static_cast<float>(is_float ? args.scalars[i].f : static_cast<double>(args.scalars[i].i));
    memory[plan->scalars[i]] = reinterpret_cast<char*>(&(*scalars)[i]);
  }
  std::vector<std::unique_ptr<ltc_buffer>> made;
  for (const uint32_t id : plan->outputs) {
    made.emplace_back(new ltc_buffer{device, plan->values[id]});
    memory[id] = made.back()->data.get();
  }
  const auto run = [plan, scalars, memory] { plan->run(memory); };
  const std::span donated(args.donate, args.donate ? args.input_count : 0);
  if (std::ranges::count(donated, 1) > 0) {
    device->queue.run(run);  // one that fails consumes nothing
  } else {
    done = device->queue.submit(run);
  }
  for (auto& buffer : made) *outputs++ = buffer.release();
  for (size_t i = 0; i < donated.size(); ++i) {
    if (donated[i]) delete args.inputs[i];
  }
}

const ltc_plugin_api api = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, memory_stats),
    .describe = slot<describe>,
    .device_open = slot<device_open>,
    .device_close = destroy<ltc_device>,
    .buffer_create = slot<buffer_create>,
    .buffer_destroy = destroy_in_order<ltc_buffer>,
    .transfer = slot<transfer>,
    .claims = slot<claims>,
    .lower = slot<lower>,
    .program_destroy = destroy<ltc_program>,
    .compile = slot<compile>,
    .executable_destroy = destroy_in_order<ltc_executable>,
    .execute = slot<execute>,
    .event_wait = WorkQueue::event_wait,
    .event_destroy = WorkQueue::event_destroy,
    .plugin_close = destroy<ltc_plugin>,
};

}  // namespace

bool ltc_plugin_entry(ltc_entry_args* args) {
  return enter(args, {1, 0}, {1, 0}, api, [&] {
    refuse_options(*args);
    return new ltc_plugin{args->host};
  });
}
