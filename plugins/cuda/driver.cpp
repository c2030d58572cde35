#include "cuda/driver.h"

#include "cuda/loaded_plan.h"
#include "cuda/lowering.h"

namespace ltc::cuda {

// The stream has passed a point. Errors of a stream are sticky, so that one that is found here may be of earlier work.
class StreamEvent : public device::Event {
 public:
  StreamEvent(Driver& driver, CUevent event, std::string what) : driver_(driver), event_(event), what_(std::move(what)) {}
  ~StreamEvent() override { driver_.give_event(event_); }

  bool is_over() override {
    const CUresult result = driver_.api().cuEventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    return check(result);
  }
  void wait() override { check(driver_.api().cuEventSynchronize(event_)); }

 private:
  bool check(CUresult result) const {
    if (result == CUDA_SUCCESS) return true;
    throw Failure(code_of(result), driver_.facts().name + " failed at or before " + what_ + ": " +
                                       driver_.api().error_text(result) +
                                       (driver_.blocks_launches() ? "" : "; with CUDA_LAUNCH_BLOCKING=1 the kernel is named"));
  }

  Driver& driver_;
  CUevent event_;
  const std::string what_;
};

namespace {

CUdeviceptr address(device::Memory memory, uint64_t offset = 0) { return reinterpret_cast<CUdeviceptr>(memory) + offset; }

}  // namespace

Queue::Queue(const DriverApi& driver_api, CUdevice device) : api(driver_api), id(device) {
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
}

void Queue::open() {
  api.check(api.cuDevicePrimaryCtxRetain(&context, id), "cuDevicePrimaryCtxRetain");
  const Current current(api, context);
  api.check(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  api.check(api.cuStreamCreate(&capture_stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = id;
  api.check(api.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
}

void Queue::close() noexcept {
  if (!context) return;
  {
    const Current current(api, context, std::nothrow);
    if (pool) api.cuMemPoolDestroy(pool);
    if (capture_stream) api.cuStreamDestroy_v2(capture_stream);
    if (stream) api.cuStreamDestroy_v2(stream);
  }
  api.cuDevicePrimaryCtxRelease_v2(id);
}

Module::Module(const Queue& on, std::string code, const std::string& function) : queue(on), binary(std::move(code)) {
  const DriverApi& api = queue.api;
  api.check(api.cuModuleLoadData(&module, binary.c_str()), "cuModuleLoadData");
  const CUresult result = api.cuModuleGetFunction(&kernel, module, function.c_str());
  if (result == CUDA_SUCCESS) return;
  api.cuModuleUnload(module);
  api.fail(result, "cuModuleGetFunction");
}

Module::~Module() {
  const Current current(queue.api, queue.context, std::nothrow);
  queue.api.cuModuleUnload(module);
}

Driver::Driver(const Libraries& libraries, const DeviceFacts& facts)
    : libraries_(libraries),
      facts_(facts),
      lowering_(lowering_for(features_of(libraries.features, facts.capability))),
      blocks_launches_(is_set("CUDA_LAUNCH_BLOCKING")),
      queue_(libraries.api, facts.id),
      communicators_(libraries.nccl.get()) {
  if (!libraries_.blas) return;
  const Current current(api(), queue_.context, std::nothrow);
  blas_workspace_ = address(allocate(Blas::kWorkspaceBytes));
  blas_ = std::make_unique<Blas>(*libraries_.blas, blas_workspace_);
}

Driver::~Driver() {
  finish();
  const Current current(api(), queue_.context, std::nothrow);
  destroy_retired(true);
  for (const CUevent event : events_) api().cuEventDestroy_v2(event);
  for (const CUdeviceptr workspace : {blas_workspace_, dnn_workspace_}) {
    if (workspace) api().cuMemFreeAsync(workspace, queue_.stream);
  }
  blas_.reset();
  dnn_.reset();
}

// Memory that was given back but lies in the pool goes to the device first.
device::Memory Driver::allocate(uint64_t bytes) {
  const Current current(api(), queue_.context);
  CUdeviceptr memory = 0;
  CUresult result = api().cuMemAllocFromPoolAsync(&memory, bytes, queue_.pool, queue_.stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    api().cuStreamSynchronize(queue_.stream);
    api().cuMemPoolTrimTo(queue_.pool, 0);
    result = api().cuMemAllocFromPoolAsync(&memory, bytes, queue_.pool, queue_.stream);
  }
  api().check(result, "cuMemAllocFromPoolAsync");
  return reinterpret_cast<device::Memory>(memory);
}

void Driver::release(device::Memory memory) noexcept {
  const Current current(api(), queue_.context, std::nothrow);
  api().cuMemFreeAsync(address(memory), queue_.stream);
}

void* Driver::allocate_pinned(uint64_t bytes) {
  const Current current(api(), queue_.context);
  void* memory = nullptr;
  api().check(api().cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
  return memory;
}

void Driver::release_pinned(void* memory) noexcept {
  const Current current(api(), queue_.context, std::nothrow);
  api().cuMemFreeHost(memory);
}

device::EventRef Driver::write(device::Memory to, uint64_t offset, const void* from, uint64_t bytes) {
  const Current current(api(), queue_.context);
  api().check(api().cuMemcpyHtoDAsync_v2(address(to, offset), from, bytes, queue_.stream), "cuMemcpyHtoDAsync");
  return record("a copy of " + std::to_string(bytes) + " bytes to the device");
}

device::EventRef Driver::read(void* to, device::Memory from, uint64_t offset, uint64_t bytes) {
  const Current current(api(), queue_.context);
  copy_to_host(to, from, offset, bytes);
  return record("a copy of " + std::to_string(bytes) + " bytes from the device");
}

void Driver::copy_to_host(void* to, device::Memory from, uint64_t offset, uint64_t bytes) {
  api().check(api().cuMemcpyDtoHAsync_v2(to, address(from, offset), bytes, queue_.stream), "cuMemcpyDtoHAsync");
}

device::EventRef Driver::copy(device::Memory to, uint64_t to_offset, device::Memory from, uint64_t from_offset, uint64_t bytes) {
  const Current current(api(), queue_.context);
  api().check(api().cuMemcpyDtoDAsync_v2(address(to, to_offset), address(from, from_offset), bytes, queue_.stream),
              "cuMemcpyDtoDAsync");
  return record("a copy of " + std::to_string(bytes) + " bytes on the device");
}

device::EventRef Driver::copy_from(device::Driver& other, device::Memory to, uint64_t to_offset, device::Memory from,
                                   uint64_t from_offset, uint64_t bytes) {
  auto& source = static_cast<Driver&>(other);
  source.admit(*this);
  follow(source);
  const Current current(api(), queue_.context);
  api().check(api().cuMemcpyPeerAsync(address(to, to_offset), queue_.context, address(from, from_offset), source.queue_.context,
                                      bytes, queue_.stream),
              "cuMemcpyPeerAsync");
  source.follow(*this);  // its memory may be given back now
  return record("a copy of " + std::to_string(bytes) + " bytes from " + source.facts_.name);
}

void Driver::follow(Driver& other) {
  const Current current(api(), queue_.context);
  CUevent event = nullptr;
  {
    const Current others(api(), other.queue_.context);
    event = other.record_event();
  }
  const CUresult result = api().cuStreamWaitEvent(queue_.stream, event, 0);
  other.give_event(event);
  api().check(result, "cuStreamWaitEvent");
}

void Driver::admit(const Driver& reader) {
  const CUdevice id = reader.queue_.id;
  const std::lock_guard guard(lock_);
  if (id == queue_.id || !readers_.insert(id).second) return;
  int can = 0;
  api().check(api().cuDeviceCanAccessPeer(&can, id, queue_.id), "cuDeviceCanAccessPeer");
  if (!can) return;  // the driver copies through the host
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = id;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  api().check(api().cuMemPoolSetAccess(queue_.pool, &access, 1), "cuMemPoolSetAccess");
}

device::EventRef Driver::mark() {
  const Current current(api(), queue_.context);
  return record("a marker");
}

void Driver::finish() noexcept {
  const Current current(api(), queue_.context, std::nothrow);
  api().cuStreamSynchronize(queue_.stream);
}

std::unique_ptr<device::LoadedPlan> Driver::load_plan(std::shared_ptr<const device::CompiledPlan> compiled_plan,
                                                      std::span<const std::string> binaries) {
  const Current current(api(), queue_.context, std::nothrow);
  return std::make_unique<LoadedPlan>(*this, std::move(compiled_plan), binaries);
}

CUevent Driver::record_event() {
  CUevent event = nullptr;
  {
    const std::lock_guard guard(lock_);
    if (!events_.empty()) {
      event = events_.back();
      events_.pop_back();
    }
  }
  if (!event) api().check(api().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  const CUresult result = api().cuEventRecord(event, queue_.stream);
  if (result != CUDA_SUCCESS) {
    give_event(event);
    api().fail(result, "cuEventRecord");
  }
  return event;
}

void Driver::give_event(CUevent event) noexcept {
  const std::lock_guard guard(lock_);
  try {
    events_.push_back(event);
  } catch (...) {
    api().cuEventDestroy_v2(event);
  }
}

device::EventRef Driver::record(std::string what) {
  return std::make_shared<StreamEvent>(*this, record_event(), std::move(what));
}

ModuleRef Driver::module(const device::KernelSource& source, const std::string& binary) {
  return modules_.get(source.text, [&]() -> ModuleRef {
    if (!binary.empty()) {
      try {
        return std::make_shared<const Module>(queue_, binary, source.function);
      } catch (const Failure&) {  // the driver wants it no more
      }
    }
    return std::make_shared<const Module>(queue_, libraries_.compiler->compile(source.text, facts_.capability), source.function);
  });
}

std::shared_ptr<const LibraryCall> Driver::library_call(const device::LibraryWork& work) {
  if (const auto* product = std::get_if<kernels::Product>(&work)) return blas_->product(blas_call(*product));
  if (const auto* collective = std::get_if<kernels::Collective>(&work)) return communicators_.call(*collective);
  std::call_once(convolves_, [&] {
    dnn_workspace_ = address(allocate(Dnn::kWorkspaceBytes));
    dnn_ = std::make_unique<Dnn>(*libraries_.dnn, dnn_workspace_);
  });
  return dnn_->convolution(std::get<kernels::LibraryConvolution>(work));
}

std::unique_ptr<device::Group> Driver::join(const ltc_group_args& args) {
  const Current current(api(), queue_.context);
  return communicators_.join(args);
}

void Driver::retire(CUgraphExec graph) noexcept {
  destroy_retired(false);
  try {
    const CUevent after = record_event();
    const std::lock_guard guard(lock_);
    retired_.push_back({graph, after});
  } catch (...) {  // a lost device, where nothing runs any more
    api().cuGraphExecDestroy(graph);
  }
}

void Driver::destroy_retired(bool all) noexcept {
  const std::lock_guard guard(lock_);
  std::erase_if(retired_, [&](const Retired& retired) {
    if (!all && api().cuEventQuery(retired.after) == CUDA_ERROR_NOT_READY) return false;
    api().cuGraphExecDestroy(retired.graph);
    api().cuEventDestroy_v2(retired.after);
    return true;
  });
}

}  // namespace ltc::cuda
