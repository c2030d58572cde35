// Buffers, transfers and events: the half of the plugin that only moves bytes.
#include <chrono>
#include <thread>

#include "device.h"
#include "kernels/dtype.h"

ltc_device::ltc_device(ltc_plugin* owner, const ltc::opencl::DeviceFacts& device_facts)
    : plugin(owner),
      facts(device_facts),
      context([&] {
        cl_int error = CL_SUCCESS;
        const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform),
                                                    0};
        const cl_context made = clCreateContext(properties, 1, &facts.id, nullptr, nullptr, &error);
        ltc::opencl::check(error, "clCreateContext");
        return made;
      }()),
      queue([&] {
        cl_int error = CL_SUCCESS;
        const cl_command_queue made = clCreateCommandQueue(context.get(), facts.id, 0, &error);
        ltc::opencl::check(error, "clCreateCommandQueue");
        return made;
      }()),
      pool(context.get(), facts.memory_bytes, facts.largest_buffer_bytes),
      staging(context.get(), queue.get()),
      programs(context.get(), facts) {}

ltc_device::~ltc_device() { clFinish(queue.get()); }

namespace ltc::opencl {
namespace {

void check_range(const ltc_buffer* buffer, const char* role, uint64_t offset, uint64_t size) {
  if (!buffer) throw Failure(LTC_INVALID_ARGUMENT, std::string("[transfer] no ") + role + " buffer");
  if (offset <= buffer->bytes && size <= buffer->bytes - offset) return;
  throw Failure(LTC_INVALID_ARGUMENT, "[transfer] " + std::to_string(size) + " bytes at offset " + std::to_string(offset) +
                                          " leave the " + role + " buffer's " + std::to_string(buffer->bytes) + " bytes");
}

ClEvent write(ltc_device* device, const ltc_transfer_args& args) {
  const cl_mem to = args.buffer->block.memory.get();
  if (args.flags & LTC_HOST_DATA_UNTIL_RETURN) return device->staging.write(to, args.offset_bytes, args.from, args.size_bytes);
  cl_event event = nullptr;
  check(
      clEnqueueWriteBuffer(device->queue.get(), to, CL_FALSE, args.offset_bytes, args.size_bytes, args.from, 0, nullptr, &event),
      "clEnqueueWriteBuffer");
  return ClEvent(event);
}

ClEvent read(ltc_device* device, const ltc_transfer_args& args) {
  const cl_bool blocking = args.flags & LTC_HOST_DATA_UNTIL_RETURN ? CL_TRUE : CL_FALSE;
  cl_event event = nullptr;
  check(clEnqueueReadBuffer(device->queue.get(), args.buffer->block.memory.get(), blocking, args.offset_bytes, args.size_bytes,
                            args.to, 0, nullptr, &event),
        "clEnqueueReadBuffer");
  return ClEvent(event);
}

ClEvent copy(ltc_device* device, const ltc_transfer_args& args) {
  cl_event event = nullptr;
  check(clEnqueueCopyBuffer(device->queue.get(), args.source->block.memory.get(), args.buffer->block.memory.get(),
                            args.source_offset_bytes, args.offset_bytes, args.size_bytes, 0, nullptr, &event),
        "clEnqueueCopyBuffer");
  return ClEvent(event);
}

ClEvent marker(ltc_device* device) {
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(device->queue.get(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  return ClEvent(event);
}

void check_transfer(const ltc_transfer_args& args) {
  check_extensions(args.ext);
  if (args.direction < LTC_TO_DEVICE || args.direction > LTC_ON_DEVICE) {
    throw Failure(LTC_UNSUPPORTED, "[transfer] unknown direction " + std::to_string(args.direction));
  }
  if (args.flags & ~uint32_t{LTC_HOST_DATA_UNTIL_RETURN}) {
    throw Failure(LTC_UNSUPPORTED, "[transfer] unknown flags " + std::to_string(args.flags));
  }
  check_range(args.buffer, args.direction == LTC_FROM_DEVICE ? "source" : "target", args.offset_bytes, args.size_bytes);
  if (args.direction == LTC_ON_DEVICE) check_range(args.source, "source", args.source_offset_bytes, args.size_bytes);
  const void* host = args.direction == LTC_TO_DEVICE ? args.from : args.direction == LTC_FROM_DEVICE ? args.to : &args;
  if (args.size_bytes > 0 && !host) throw Failure(LTC_INVALID_ARGUMENT, "[transfer] no host memory");
}

}  // namespace

uint64_t held_dtypes(const DeviceFacts& facts) {
  uint64_t dtypes = 0;
  for (ltc_dtype dtype = LTC_BOOL; dtype < 64; ++dtype) {
    const bool wide = dtype == LTC_F64 || dtype == LTC_C128;
    if (kernels::bits_of(dtype) >= 8 && (facts.fp64 || !wide)) dtypes |= uint64_t{1} << dtype;
  }
  return dtypes;
}

ltc_buffer* create_buffer(ltc_device* device, TensorType type) {
  if (type.dtype >= 64 || !(held_dtypes(device->facts) >> type.dtype & 1)) {
    throw Failure(LTC_UNSUPPORTED, "the device holds no dtype " + std::to_string(type.dtype));
  }
  for (const int64_t size : type.sizes) {
    if (size < 0) throw Failure(LTC_INVALID_ARGUMENT, "a size is " + std::to_string(size));
  }
  const uint64_t bytes = type.bytes();
  Block block = device->pool.take(bytes);
  return new ltc_buffer{device, std::move(type), bytes, std::move(block)};
}

void destroy_buffer(ltc_buffer* buffer) noexcept {
  buffer->device->pool.give(std::move(buffer->block));
  delete buffer;
}

void transfer(ltc_device* device, const ltc_transfer_args& args, ltc_event** done) {
  check_transfer(args);
  ClEvent event;
  if (args.size_bytes == 0) {
    event = marker(device);
  } else if (args.direction == LTC_TO_DEVICE) {
    event = write(device, args);
  } else {
    event = args.direction == LTC_FROM_DEVICE ? read(device, args) : copy(device, args);
  }
  check(clFlush(device->queue.get()), "clFlush");
  const bool complete =
      args.direction == LTC_FROM_DEVICE && (args.flags & LTC_HOST_DATA_UNTIL_RETURN) && device->unobserved.empty();
  if (!complete) deliver(device, std::move(event), done);
}

void deliver(ltc_device* device, ClEvent event, ltc_event** done) {
  if (!done) {
    device->unobserved.clear();  // in order: what the last run waits for is over when it is
    device->unobserved.push_back(std::move(event));
    return;
  }
  auto made = std::make_unique<ltc_event>(ltc_event{device->plugin->host, {std::move(event)}});
  for (ClEvent& earlier : device->unobserved) made->events.push_back(std::move(earlier));
  device->unobserved.clear();
  *done = made.release();
}

void wait(const ltc_event& event, uint64_t timeout_ns, bool& finished) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (const ClEvent& one : event.events) {
    cl_int status = CL_QUEUED;
    for (int round = 0; status > CL_COMPLETE; ++round) {
      // A wait on work that failed answers an error of its own; the status below tells which.
      const cl_event raw = one.get();
      if (timeout_ns == LTC_FOREVER) clWaitForEvents(1, &raw);
      check(clGetEventInfo(one.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), "clGetEventInfo");
      if (status <= CL_COMPLETE) break;
      const uint64_t passed = static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
      if (passed >= timeout_ns) {
        finished = false;
        return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(round < 20 ? 20 : 500));
    }
    finished = true;
    if (status < 0) throw Failure(code_of(status), "a command failed on the device: " + error_name(status));
  }
  finished = true;
}

}  // namespace ltc::opencl
