// An open CUDA device and its stream.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <vector>

#include "cuda/blas.h"
#include "cuda/libraries.h"
#include "device/compiled_plan.h"
#include "device/sources.h"

namespace ltc::cuda {

// A context, current on this thread while this lives: a method may be called by any.
class Current {
 public:
  Current(const DriverApi& api, CUcontext context) : Current(api, context, std::nothrow) {
    api.check(result_, "cuCtxPushCurrent");
  }
  // Where that fails, so does what follows: for who gives back what a lost device has no more.
  Current(const DriverApi& api, CUcontext context, std::nothrow_t) noexcept
      : api_(api), result_(api.cuCtxPushCurrent_v2(context)) {}
  ~Current() {
    CUcontext popped = nullptr;
    if (result_ == CUDA_SUCCESS) api_.cuCtxPopCurrent_v2(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const DriverApi& api_;
  const CUresult result_;
};

// The handles through which a device is used.
struct Queue {
  Queue(const DriverApi& driver_api, CUdevice device);
  ~Queue() { close(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  const DriverApi& api;
  const CUdevice id;
  CUcontext context = nullptr;  // the device's primary one
  CUstream stream = nullptr;
  CUstream capture_stream = nullptr;  // nothing runs on it: what is submitted to it is captured
  CUmemoryPool pool = nullptr;

 private:
  void open();
  void close() noexcept;
};

// A source's machine code, loaded.
struct Module {
  Module(const Queue& on, std::string code, const std::string& function);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Queue& queue;
  const std::string binary;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
};
using ModuleRef = device::CompiledSources<Module>::Ref;

class Driver : public device::Driver {
 public:
  Driver(const Libraries& libraries, const DeviceFacts& facts);
  ~Driver() override;

  const DeviceFacts& facts() const override { return facts_; }
  const device::Lowering& lowering() const override { return lowering_; }

  device::Memory allocate(uint64_t bytes) override;
  void release(device::Memory memory) noexcept override;
  void* allocate_pinned(uint64_t bytes) override;
  void release_pinned(void* memory) noexcept override;

  device::EventRef write(device::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  device::EventRef read(void* to, device::Memory from, uint64_t offset, uint64_t bytes) override;
  device::EventRef copy(device::Memory to, uint64_t to_offset, device::Memory from, uint64_t from_offset,
                        uint64_t bytes) override;
  device::EventRef copy_from(device::Driver& source, device::Memory to, uint64_t to_offset, device::Memory from,
                             uint64_t from_offset, uint64_t bytes) override;
  device::EventRef mark() override;
  std::unique_ptr<device::LoadedPlan> load_plan(std::shared_ptr<const device::CompiledPlan> compiled_plan,
                                                std::span<const std::string> binaries) override;
  std::unique_ptr<device::Group> join(const ltc_group_args& args) override;
  bool is_member(int64_t group) const override { return communicators_.has(group); }
  void finish() noexcept override;

  // ---- for LoadedPlan

  const DriverApi& api() const { return libraries_.api; }
  const Queue& queue() const { return queue_; }
  // Submits a copy, in the device's context. `to` is pinned, or this waits.
  void copy_to_host(void* to, device::Memory from, uint64_t offset, uint64_t bytes);
  // An event for all that was submitted. `what`: of which work its errors speak.
  device::EventRef record(std::string what);
  ModuleRef module(const device::KernelSource& source, const std::string& binary);
  std::shared_ptr<const LibraryCall> library_call(const device::LibraryWork& work);
  const Communicators& communicators() const { return communicators_; }
  // Destroys the graph once what was submitted is over.
  void retire(CUgraphExec graph) noexcept;
  // Whether each launch ends before the next begins, so that its error is known to be its own.
  bool blocks_launches() const { return blocks_launches_; }

 private:
  friend class StreamEvent;
  CUevent record_event();
  // Work submitted from now on runs after the work that the other has now.
  void follow(Driver& other);
  // The other copies from this one's memory, directly where the two are connected so.
  void admit(const Driver& reader);
  void give_event(CUevent event) noexcept;
  void destroy_retired(bool all) noexcept;

  const Libraries& libraries_;
  const DeviceFacts& facts_;
  const device::Lowering lowering_;
  const bool blocks_launches_;
  const Queue queue_;
  CUdeviceptr blas_workspace_ = 0, dnn_workspace_ = 0;
  std::unique_ptr<Blas> blas_;  // null: no cuBLASLt
  std::once_flag convolves_;
  std::unique_ptr<Dnn> dnn_;  // once there was a convolution for it
  Communicators communicators_;
  device::CompiledSources<Module> modules_;
  std::mutex lock_;
  std::vector<CUevent> events_;  // to be used again
  struct Retired {
    CUgraphExec graph;
    CUevent after;
  };
  std::vector<Retired> retired_;
  std::set<CUdevice> readers_;  // other devices that were admitted
};

}  // namespace ltc::cuda
