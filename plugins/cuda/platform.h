// The devices that CUDA offers, and the libraries that they are used through.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/libraries.h"
#include "device/driver.h"

namespace ltc::cuda {

// All that plans and machine code depend on. Code for a compute capability runs on every device of it; Driver::module() compiles
// again what a driver does not take.
std::string fingerprint_of(int capability, const Compiler& compiler, const Features& features);

class Platform : public device::Platform {
 public:
  Platform(SearchPath path, const Features& wanted);
  size_t device_count() const override { return devices_.size(); }
  const std::string& why_no_device() const override { return why_no_device_; }
  std::unique_ptr<device::Driver> open(size_t ordinal) override;

 private:
  const SearchPath path_;
  const Features wanted_;
  std::unique_ptr<Libraries> libraries_;
  std::vector<DeviceFacts> devices_;
  std::once_flag opened_;
  std::string why_no_device_;
};

}  // namespace ltc::cuda
