// The plugin interpreter: it computes the minimal opset on dense arrays.
#include "ltc/plugin.hpp"
#include "ltc/queue.hpp"

#include "memory.h"
#include "plan.h"

using namespace ltc::plugin;
using PlanRef = std::shared_ptr<const interpreter::Plan>;

struct ltc_plugin {
  const ltc_host_api* host;
};
struct ltc_device {
  ltc_plugin* plugin;
  WorkQueue queue{plugin->host};
};
struct ltc_buffer {
  ltc_device* device;
  ltc_dtype dtype;
  uint64_t bytes;
  Memory memory = make_memory(bytes);
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
  info.name = literal("interpreter");
  info.version = literal("0.1");
  info.device_count = 1;
  info.sanitizers = sanitizers();
}

// The dtypes that the device holds, a bit for each.
const uint64_t kDtypes = all_dtypes();

void device_open(ltc_plugin* plugin, const ltc_device_args& args, ltc_device_info& info, ltc_device*& device) {
  check_ordinal(args, 1);
  info.name = literal("host memory");
  info.fingerprint = literal("interpreter-1");
  info.dtypes = kDtypes;
  device = new ltc_device{plugin};
}

void buffer_create(ltc_device* device, const ltc_buffer_args& args, ltc_buffer*& buffer) {
  const uint64_t bytes = bytes_of(*args.type);  // refuses dtypes that do not exist
  if ((kDtypes >> args.type->dtype & 1) == 0) {
    throw Failure(LTC_UNSUPPORTED, "[buffer_create] the device holds no dtype " + std::to_string(args.type->dtype));
  }
  buffer = new ltc_buffer{device, args.type->dtype, bytes};
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event*& done) {
  const Copy copy = copy_of(args, [](ltc_buffer& buffer) { return std::span(buffer.memory.get(), buffer.bytes); });
  done = device->queue.submit([copy] { driver::copy(copy.to, copy.from, copy.bytes); });
}

void claims(ltc_device*, const ltc_claims_args& args, uint32_t* cluster) { interpreter::claim(*args.graph, cluster); }

void lower(ltc_device*, const ltc_lower_args& args, ltc_program*& program) {
  program = new ltc_program{std::make_shared<const interpreter::Plan>(*args.graph)};
}

void compile(ltc_device* device, const ltc_compile_args& args, ltc_executable*& executable) {
  executable = new ltc_executable{device, args.program->plan};
}

void check_run(const interpreter::Plan& plan, const ltc_execute_args& args) {
  check_counts(args, plan.inputs().size(), plan.scalars().size(), plan.outputs().size());
  for (size_t i = 0; i < args.input_count; ++i) {
    const interpreter::Type& type = plan.type(plan.inputs()[i]);
    if (args.inputs[i]->dtype == type.dtype && args.inputs[i]->bytes == type.bytes) continue;
    throw Failure(LTC_INVALID_ARGUMENT, "[execute] input " + std::to_string(i) + " is of another type than the graph's");
  }
}

void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event*& done) {
  const PlanRef plan = args.executable->plan;
  check_run(*plan, args);
  std::vector<char*> memory(plan->value_count());
  for (size_t i = 0; i < args.input_count; ++i) memory[plan->inputs()[i]] = args.inputs[i]->memory.get();
  const auto scalars = std::make_shared<std::vector<ltc_scalar>>(args.scalars, args.scalars + args.scalar_count);
  for (size_t i = 0; i < args.scalar_count; ++i) memory[plan->scalars()[i]] = reinterpret_cast<char*>(&(*scalars)[i]);
  std::vector<std::unique_ptr<ltc_buffer>> made;
  for (const uint32_t value : plan->outputs()) {
    const interpreter::Type& type = plan->type(value);
    made.emplace_back(new ltc_buffer{device, type.dtype, type.bytes});
    memory[value] = made.back()->memory.get();
  }
  const auto run = [plan, scalars, memory] { plan->run(memory); };
  const std::span donated(args.donate, args.donate ? args.input_count : 0);
  if (plan->may_fail() && std::ranges::count(donated, 1) > 0) {
    device->queue.run(run);  // a run that fails consumes nothing
  } else {
    done = device->queue.submit(run);
  }
  for (auto& buffer : made) *outputs++ = buffer.release();
  for (size_t i = 0; i < donated.size(); ++i) {
    if (donated[i]) destroy_in_order(args.inputs[i]);
  }
}

void executable_save(const ltc_executable& executable, const ltc_sink& sink) {
  const std::string bytes = executable.plan->save();
  (void)sink.write(sink.context, bytes.data(), bytes.size());
}

void executable_load(ltc_device* device, const ltc_load_args& args, ltc_executable*& executable) {
  const std::string_view bytes(static_cast<const char*>(args.data), args.size);
  executable = new ltc_executable{device, std::make_shared<const interpreter::Plan>(bytes)};
}

const ltc_plugin_api api = {
    .struct_size = LTC_SIZE_TO(ltc_plugin_api, event_good_outputs),
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
    .executable_save = slot<executable_save>,
    .executable_load = slot<executable_load>,
    .event_good_outputs = WorkQueue::event_good_outputs,
};

}  // namespace

bool ltc_plugin_entry(ltc_entry_args* args) {
  return enter(args, {1, 0}, {1, 0}, api, [&] {
    refuse_options(*args);
    return new ltc_plugin{args->host};
  });
}
