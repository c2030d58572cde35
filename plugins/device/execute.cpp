// A run: its arguments checked, its memory found, its launches submitted.
#include <algorithm>
#include <utility>

#include "device/objects.h"
#include "device/profiled_plan.h"

namespace ltc::device {
namespace {

void check_input(ltc_device* device, const ltc_buffer* buffer, size_t i, const TensorType& type) {
  const std::string which = "[execute] input " + std::to_string(i);
  if (!buffer) throw Failure(LTC_INVALID_ARGUMENT, which + " is NULL");
  if (buffer->device != device) throw Failure(LTC_INVALID_ARGUMENT, which + " is on another device");
  if (buffer->type != type) {
    throw Failure(LTC_INVALID_ARGUMENT, which + " is " + buffer->type.text() + ", compiled for " + type.text());
  }
}

void check_args(ltc_device* device, const CompiledPlan& compiled_plan, const ltc_execute_args& args) {
  plugin::check_counts(args, compiled_plan.inputs.size(), compiled_plan.scalars.size(), compiled_plan.outputs.size());
  for (size_t i = 0; i < args.input_count; ++i) check_input(device, args.inputs[i], i, compiled_plan.inputs[i]);
  for (size_t i = 0; i < args.input_count; ++i) args.inputs[i]->seen = args.inputs[i]->donated = false;
  for (size_t i = 0; i < args.input_count; ++i) {
    ltc_buffer& buffer = *args.inputs[i];
    const bool donated = args.donate && args.donate[i];
    if (buffer.seen && (donated || buffer.donated)) {
      throw Failure(LTC_INVALID_ARGUMENT, "[execute] input " + std::to_string(i) + " is donated and given twice");
    }
    buffer.seen = true;
    buffer.donated = donated;
  }
}

// Memory of one run: what it makes, and what lies between. Gives back what is not taken from it.
class RunMemory {
 public:
  RunMemory(ltc_device* device, const ltc_executable& executable, const ltc_execute_args& args) : device_(device) {
    const CompiledPlan& compiled_plan = *executable.compiled_plan;
    outputs_.reserve(compiled_plan.outputs.size());
    slots_.reserve(compiled_plan.slots.size());
    try {
      for (size_t i = 0; i < compiled_plan.outputs.size(); ++i) add_output(compiled_plan.outputs[i], donor(executable, i, args));
      for (const uint64_t bytes : compiled_plan.slots) slots_.push_back(device->pool.take(bytes));
    } catch (...) {
      release();
      throw;
    }
  }
  ~RunMemory() { release(); }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  Memory output(size_t i) const { return (outputs_[i].donor ? outputs_[i].donor : outputs_[i].buffer)->block.memory; }
  const std::vector<Block>& slots() const { return slots_; }
  // Donated memory changes hands.
  void take_outputs(ltc_buffer** outputs) noexcept {
    for (const Output& output : outputs_) {
      if (output.donor) output.buffer->block = std::exchange(output.donor->block, {});
      *outputs++ = output.buffer;
    }
    outputs_.clear();
  }

 private:
  struct Output {
    ltc_buffer* buffer;
    ltc_buffer* donor;  // has the memory until the run is submitted; null: the buffer has its own
  };

  // An output that is written before the last check would overwrite what a run with a bad index leaves.
  static ltc_buffer* donor(const ltc_executable& executable, size_t output, const ltc_execute_args& args) {
    if (executable.checked_launches > 0 && executable.first_writers[output] < executable.checked_launches) return nullptr;
    const uint32_t input = executable.compiled_plan->takes_over[output];
    return input != LTC_NONE && args.donate && args.donate[input] ? args.inputs[input] : nullptr;
  }
  void add_output(const TensorType& type, ltc_buffer* donor) {
    outputs_.push_back({donor ? new ltc_buffer{device_, type, donor->bytes, {}} : create_buffer(device_, type), donor});
  }
  void release() noexcept {
    for (const Block& slot : slots_) device_->pool.give(slot);
    for (const Output& output : outputs_) destroy_buffer(output.buffer);
    slots_.clear();
    outputs_.clear();
  }

  ltc_device* device_;
  std::vector<Output> outputs_;
  std::vector<Block> slots_;
};

}  // namespace

void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  ltc_executable& executable = *args.executable;
  check_args(device, *executable.compiled_plan, args);
  RunMemory memory(device, executable, args);
  for (size_t i = 0; i < args.input_count; ++i) executable.inputs[i] = args.inputs[i]->block.memory;
  for (size_t i = 0; i < executable.outputs.size(); ++i) executable.outputs[i] = memory.output(i);
  std::ranges::transform(memory.slots(), executable.slots.begin(), &Block::memory);
  Run run{executable.inputs, executable.outputs, executable.slots, {args.scalars, args.scalar_count}, args.run_id};
  const bool donates = args.donate && std::find(args.donate, args.donate + args.input_count, 1) != args.donate + args.input_count;
  const size_t launches_to_await = donates ? executable.checked_launches : 0;
  const auto submit = [&](LoadedPlan& plan) {
    return device->faults.submit(plan, run, executable.compiled_plan, launches_to_await);
  };
  if (const plugin::Profiler profiler(args); profiler) [[unlikely]] {
    ProfiledPlan profiled(*executable.loaded_plan, *executable.compiled_plan, *device->driver, profiler);
    *done = new ltc_event{device, submit(profiled)};
  } else {
    *done = new ltc_event{device, submit(*executable.loaded_plan)};
  }
  memory.take_outputs(outputs);
  for (size_t i = 0; args.donate && i < args.input_count; ++i) {
    if (args.donate[i]) destroy_buffer(args.inputs[i]);
  }
}

}  // namespace ltc::device
