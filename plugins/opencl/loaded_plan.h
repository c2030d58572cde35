// A compiled plan's kernels, ready to run on a device.
#pragma once
#include <vector>

#include "opencl/driver.h"

namespace ltc::opencl {

class LoadedPlan : public device::LoadedPlan {
 public:
  LoadedPlan(Driver& driver, Programs& programs, std::shared_ptr<const device::CompiledPlan> compiled_plan,
             std::span<const std::string> binaries);

  device::EventRef submit(const device::Run& run) override;
  std::vector<std::string> binaries() const override;

 private:
  void enqueue(size_t i, const device::Run& run, cl_event* event);

  Driver& driver_;
  Programs& sources_;
  const std::shared_ptr<const device::CompiledPlan> compiled_plan_;
  std::vector<Programs::Ref> programs_;             // by source
  std::vector<ClKernel> kernels_;                   // by launch
  std::vector<std::vector<device::Memory>> bound_;  // by launch: what its pointers were last set to
};

}  // namespace ltc::opencl
