// A run kernel by kernel, for the host's profile of it.
#pragma once
#include "device/driver.h"
#include "ltc/profile.hpp"

namespace ltc::device {

// Submits one launch after the other and waits for each: kernels that overlap cannot be timed apart.
class ProfiledPlan : public LoadedPlan {
 public:
  // All outlive this.
  ProfiledPlan(LoadedPlan& plan, const CompiledPlan& compiled_plan, Driver& driver, const plugin::Profiler& profiler);

  EventRef submit(const Run& run) override;
  std::vector<std::string> binaries() const override { return plan_.binaries(); }

 private:
  LoadedPlan& plan_;
  const CompiledPlan& compiled_plan_;
  const plugin::Profiler& profiler_;
};

}  // namespace ltc::device
