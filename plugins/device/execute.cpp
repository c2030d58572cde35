// A run: its arguments checked, its memory found, its launches submitted.
#include <algorithm>

#include "device/objects.h"

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

void check_args(ltc_device* device, const Recipe& recipe, const ltc_execute_args& args) {
  abi::check_extensions(args.ext);
  abi::check_count("inputs", args.input_count, recipe.inputs.size());
  abi::check_count("scalars", args.scalar_count, recipe.scalars.size());
  abi::check_count("outputs", args.output_count, recipe.outputs.size());
  for (size_t i = 0; i < args.input_count; ++i) check_input(device, args.inputs[i], i, recipe.inputs[i]);
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
  RunMemory(ltc_device* device, const Recipe& recipe) : device_(device) {
    outputs_.reserve(recipe.outputs.size());
    slots_.reserve(recipe.slots.size());
    try {
      for (const TensorType& type : recipe.outputs) outputs_.push_back(create_buffer(device, type));
      for (const uint64_t bytes : recipe.slots) slots_.push_back(device->pool.take(bytes));
    } catch (...) {
      release();
      throw;
    }
  }
  ~RunMemory() { release(); }
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  const std::vector<ltc_buffer*>& outputs() const { return outputs_; }
  const std::vector<Block>& slots() const { return slots_; }
  std::vector<ltc_buffer*> take_outputs() { return std::move(outputs_); }

 private:
  void release() noexcept {
    for (const Block& slot : slots_) device_->pool.give(slot);
    for (ltc_buffer* output : outputs_) destroy_buffer(output);
    slots_.clear();
    outputs_.clear();
  }

  ltc_device* device_;
  std::vector<ltc_buffer*> outputs_;
  std::vector<Block> slots_;
};

}  // namespace

void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  ltc_executable& executable = *args.executable;
  check_args(device, *executable.recipe, args);
  RunMemory memory(device, *executable.recipe);
  for (size_t i = 0; i < args.input_count; ++i) executable.inputs[i] = args.inputs[i]->block.memory;
  std::ranges::transform(memory.outputs(), executable.outputs.begin(), [](ltc_buffer* output) { return output->block.memory; });
  std::ranges::transform(memory.slots(), executable.slots.begin(), &Block::memory);
  const Run run{executable.inputs, executable.outputs, executable.slots, {args.scalars, args.scalar_count}, args.run_id};
  deliver(device, executable.prepared->submit(run), done);
  std::ranges::copy(memory.take_outputs(), outputs);
  for (size_t i = 0; args.donate && i < args.input_count; ++i) {
    if (args.donate[i]) destroy_buffer(args.inputs[i]);
  }
}

}  // namespace ltc::device
