#include "executable.h"

#include <algorithm>

namespace ltc::opencl {
namespace {

void set_arg(cl_kernel kernel, cl_uint at, size_t size, const void* value) {
  check(clSetKernelArg(kernel, at, size, value), "clSetKernelArg");
}

// The integers never change, so they are set once.
ClKernel make_kernel(const ClProgram& program, const Launch& launch) {
  cl_int error = CL_SUCCESS;
  ClKernel kernel(clCreateKernel(program.get(), "ltc_kernel_0", &error));
  check(error, "clCreateKernel");
  cl_uint at = static_cast<cl_uint>(launch.buffers.size() + launch.scalars.size());
  for (const int64_t integer : launch.integers) {
    const auto narrow = static_cast<int32_t>(integer);
    launch.long_index ? set_arg(kernel.get(), at++, sizeof integer, &integer)
                      : set_arg(kernel.get(), at++, sizeof narrow, &narrow);
  }
  return kernel;
}

// The value of a scalar param as the kernel takes it.
void set_scalar(cl_kernel kernel, cl_uint at, ltc_dtype dtype, const ltc_scalar& scalar) {
  const auto f32 = static_cast<float>(scalar.f);
  const auto u8 = static_cast<uint8_t>(scalar.i != 0);
  switch (dtype) {
    case LTC_F64: return set_arg(kernel, at, sizeof scalar.f, &scalar.f);
    case LTC_F32: return set_arg(kernel, at, sizeof f32, &f32);
    case LTC_BOOL: return set_arg(kernel, at, sizeof u8, &u8);
    default: return set_arg(kernel, at, sizeof scalar.i, &scalar.i);
  }
}

void check_count(const char* what, size_t given, size_t wanted) {
  if (given == wanted) return;
  throw Failure(LTC_INVALID_ARGUMENT,
                "[execute] " + std::to_string(given) + " " + what + " given, " + std::to_string(wanted) + " compiled");
}

void check_input(ltc_device* device, const ltc_buffer* buffer, size_t i, const TensorType& type) {
  const std::string which = "[execute] input " + std::to_string(i);
  if (!buffer) throw Failure(LTC_INVALID_ARGUMENT, which + " is NULL");
  if (buffer->device != device) throw Failure(LTC_INVALID_ARGUMENT, which + " is on another device");
  if (buffer->type != type) {
    throw Failure(LTC_INVALID_ARGUMENT, which + " is " + buffer->type.text() + ", compiled for " + type.text());
  }
}

void check_args(ltc_device* device, const Recipe& recipe, const ltc_execute_args& args) {
  check_extensions(args.ext);
  check_count("inputs", args.input_count, recipe.inputs.size());
  check_count("scalars", args.scalar_count, recipe.scalars.size());
  check_count("outputs", args.output_count, recipe.outputs.size());
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
  RunMemory(ltc_device* device, const ltc_execute_args& args) : device_(device), args_(args) {
    const Recipe& recipe = args.executable->recipe;
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

  cl_mem at(const Binding& binding) const {
    switch (binding.place) {
      case Binding::Place::kInput: return args_.inputs[binding.index]->block.memory.get();
      case Binding::Place::kOutput: return outputs_[binding.index]->block.memory.get();
      default: return slots_[binding.index].memory.get();
    }
  }
  std::vector<ltc_buffer*> take_outputs() { return std::move(outputs_); }

 private:
  void release() noexcept {
    for (Block& slot : slots_) device_->pool.give(std::move(slot));
    for (ltc_buffer* output : outputs_) destroy_buffer(output);
    slots_.clear();
    outputs_.clear();
  }

  ltc_device* device_;
  const ltc_execute_args& args_;
  std::vector<ltc_buffer*> outputs_;
  std::vector<Block> slots_;
};

void enqueue(ltc_executable& executable, size_t i, const RunMemory& memory, const ltc_execute_args& args, cl_event* event) {
  const Launch& launch = executable.recipe.launches[i];
  const cl_kernel kernel = executable.kernels[i].get();
  cl_uint at = 0;
  for (const Binding& binding : launch.buffers) {
    const cl_mem pointer = memory.at(binding);
    cl_mem& bound = executable.bound[i][at];
    if (bound != pointer) set_arg(kernel, at, sizeof pointer, &pointer);
    bound = pointer;
    ++at;
  }
  for (const ScalarBinding& scalar : launch.scalars) set_scalar(kernel, at++, scalar.dtype, args.scalars[scalar.index]);
  const size_t local = launch.local_size;
  const size_t items = (static_cast<size_t>(launch.integers[0]) + local - 1) / local * local;
  check(clEnqueueNDRangeKernel(executable.device->queue.get(), kernel, 1, nullptr, &items, &local, 0, nullptr, event),
        "clEnqueueNDRangeKernel");
}

ClEvent enqueue_all(ltc_executable& executable, const RunMemory& memory, const ltc_execute_args& args) {
  cl_event event = nullptr;
  const cl_command_queue queue = executable.device->queue.get();
  const size_t count = executable.kernels.size();
  for (size_t i = 0; i < count; ++i) enqueue(executable, i, memory, args, i + 1 == count ? &event : nullptr);
  if (count == 0) check(clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  ClEvent last(event);
  check(clFlush(queue), "clFlush");
  return last;
}

}  // namespace

void execute(ltc_device* device, const ltc_execute_args& args, ltc_buffer** outputs, ltc_event** done) {
  ltc_executable& executable = *args.executable;
  check_args(device, executable.recipe, args);
  RunMemory memory(device, args);
  deliver(device, enqueue_all(executable, memory, args), done);
  std::ranges::copy(memory.take_outputs(), outputs);
  for (size_t i = 0; args.donate && i < args.input_count; ++i) {
    if (args.donate[i]) destroy_buffer(args.inputs[i]);
  }
}

}  // namespace ltc::opencl

ltc_executable::ltc_executable(ltc_device* owner, ltc::opencl::Recipe made_of, const std::vector<std::string>& binaries)
    : device(owner), recipe(std::move(made_of)) {
  for (size_t i = 0; i < recipe.sources.size(); ++i) {
    programs.push_back(device->programs.build(recipe.sources[i], binaries.empty() ? "" : binaries[i]));
  }
  for (const ltc::opencl::Launch& launch : recipe.launches) {
    kernels.push_back(ltc::opencl::make_kernel(programs[launch.source], launch));
    bound.emplace_back(launch.buffers.size(), nullptr);
  }
}
