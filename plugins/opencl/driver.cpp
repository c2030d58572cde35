#include "opencl/driver.h"

#include "opencl/errors.h"
#include "opencl/gemm.h"
#include "opencl/loaded_plan.h"

namespace ltc::opencl {
namespace {

class CommandEvent : public device::Event {
 public:
  explicit CommandEvent(cl_event event) : event_(event) {}

  bool is_over() override {
    cl_int status = CL_QUEUED;
    check(clGetEventInfo(event_.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), "clGetEventInfo");
    if (status < 0) throw Failure(code_of(status), "a command failed on the device: " + error_name(status));
    return status == CL_COMPLETE;
  }
  // A wait on work that failed answers an error of its own; the status tells which.
  void wait() override {
    const cl_event raw = event_.get();
    while (!is_over()) clWaitForEvents(1, &raw);
  }

 private:
  ClEvent event_;
};

// Small groups suit kernels that loop; they do much in each work item.
device::Lowering lowering_for(const DeviceFacts& facts) {
  return {.dialect = kernels::opencl_dialect(),
          .options = {.abilities = {facts.fp64},
                      .library_product = wants_gemm,
                      .tile_columns = kTileColumns,
                      .points_by_image = 8 * kTileColumns,
                      .check_indices = true},
          .elements_local = 64,
          .rows_local = 4,
          .product = gemm_source,
          .checks_before_donations = true};
}

Context make_context(const DeviceFacts& facts) {
  cl_int error = CL_SUCCESS;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(facts.platform), 0};
  const cl_context made = clCreateContext(properties, 1, &facts.id, nullptr, nullptr, &error);
  check(error, "clCreateContext");
  return Context(made);
}

// Stays for the process: PoCL reads its library of functions, half a second, for each context.
Context context_of(const DeviceFacts& facts) {
  static std::mutex lock;
  static auto& contexts = *new std::unordered_map<cl_device_id, Context>;
  const std::lock_guard guard(lock);
  Context& context = contexts[facts.id];
  if (!context) context = make_context(facts);
  return context;
}

Queue make_queue(const Context& context, const DeviceFacts& facts) {
  cl_int error = CL_SUCCESS;
  const cl_command_queue made = clCreateCommandQueue(context.get(), facts.id, 0, &error);
  check(error, "clCreateCommandQueue");
  return Queue(made);
}

}  // namespace

Driver::Driver(const DeviceFacts& facts)
    : facts_(facts),
      lowering_(lowering_for(facts)),
      context_(context_of(facts)),
      queue_(make_queue(context_, facts)),
      programs_(context_.get(), facts) {}

device::Memory Driver::allocate(uint64_t bytes) {
  cl_int error = CL_SUCCESS;
  const cl_mem made = clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &error);
  check(error, "clCreateBuffer");
  return made;
}

void* Driver::allocate_pinned(uint64_t bytes) {
  cl_int error = CL_SUCCESS;
  Memory memory(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, nullptr, &error));
  check(error, "clCreateBuffer (pinned)");
  void* mapped = clEnqueueMapBuffer(queue(), memory.get(), CL_TRUE, CL_MAP_WRITE, 0, bytes, 0, nullptr, nullptr, &error);
  check(error, "clEnqueueMapBuffer");
  const std::lock_guard guard(lock_);
  pinned_.emplace(mapped, std::move(memory));
  return mapped;
}

void Driver::release_pinned(void* memory) noexcept {
  const std::lock_guard guard(lock_);
  const auto found = pinned_.find(memory);
  clEnqueueUnmapMemObject(queue(), found->second.get(), memory, 0, nullptr, nullptr);
  pinned_.erase(found);
}

device::EventRef Driver::submitted(cl_event event) const {
  device::EventRef made = std::make_shared<CommandEvent>(event);
  check(clFlush(queue()), "clFlush");
  return made;
}

device::EventRef Driver::write(device::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  cl_event event = nullptr;
  check(clEnqueueWriteBuffer(queue(), static_cast<cl_mem>(to), CL_FALSE, offset, bytes, from, 0, nullptr, &event),
        "clEnqueueWriteBuffer");
  return submitted(event);
}

device::EventRef Driver::read(void* to, device::Memory from, uint64_t offset, uint64_t bytes) {
  cl_event event = nullptr;
  check(clEnqueueReadBuffer(queue(), static_cast<cl_mem>(from), CL_FALSE, offset, bytes, to, 0, nullptr, &event),
        "clEnqueueReadBuffer");
  return submitted(event);
}

device::EventRef Driver::copy(device::Memory to, uint64_t to_offset, device::Memory from, uint64_t from_offset, uint64_t bytes) {
  cl_event event = nullptr;
  check(clEnqueueCopyBuffer(queue(), static_cast<cl_mem>(from), static_cast<cl_mem>(to), from_offset, to_offset, bytes, 0,
                            nullptr, &event),
        "clEnqueueCopyBuffer");
  return submitted(event);
}

device::EventRef Driver::mark() {
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(queue(), 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  return submitted(event);
}

std::unique_ptr<device::LoadedPlan> Driver::load_plan(std::shared_ptr<const device::CompiledPlan> compiled_plan,
                                                      std::span<const std::string> binaries) {
  return std::make_unique<LoadedPlan>(*this, programs_, std::move(compiled_plan), binaries);
}

}  // namespace ltc::opencl
