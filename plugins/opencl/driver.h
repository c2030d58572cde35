// An open OpenCL device and its queue.
#pragma once
#include <mutex>
#include <string>
#include <unordered_map>

#include "device/driver.h"
#include "opencl/handle.h"
#include "opencl/platform.h"
#include "opencl/programs.h"

namespace ltc::opencl {

class Driver : public device::Driver {
 public:
  explicit Driver(const DeviceFacts& facts);
  ~Driver() override { finish(); }

  const DeviceFacts& facts() const override { return facts_; }
  const device::Lowering& lowering() const override { return lowering_; }

  device::Memory allocate(uint64_t bytes) override;
  void release(device::Memory memory) noexcept override { clReleaseMemObject(static_cast<cl_mem>(memory)); }
  void* allocate_pinned(uint64_t bytes) override;
  void release_pinned(void* memory) noexcept override;

  device::EventRef write(device::Memory to, uint64_t offset, const void* from, uint64_t bytes) override;
  device::EventRef read(void* to, device::Memory from, uint64_t offset, uint64_t bytes) override;
  device::EventRef copy(device::Memory to, uint64_t to_offset, device::Memory from, uint64_t from_offset,
                        uint64_t bytes) override;
  device::EventRef mark() override;
  std::unique_ptr<device::LoadedPlan> load_plan(std::shared_ptr<const device::CompiledPlan> compiled_plan,
                                                std::span<const std::string> binaries) override;
  void finish() noexcept override { clFinish(queue_.get()); }

  const Context& context() const { return context_; }
  cl_command_queue queue() const { return queue_.get(); }
  // The event of the last command that was enqueued; the queue starts to work on it.
  device::EventRef submitted(cl_event event) const;

 private:
  const DeviceFacts& facts_;
  const device::Lowering lowering_;
  Context context_;
  Queue queue_;
  Programs programs_;
  std::mutex lock_;
  std::unordered_map<void*, Memory> pinned_;  // by the address at which it is mapped
};

}  // namespace ltc::opencl
