// The devices that CUDA offers, and the libraries that they are used through.
#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "blas.h"
#include "compiler.h"
#include "device/driver.h"
#include "dnn.h"
#include "driver_api.h"
#include "lowering.h"

namespace ltc::cuda {

// Loaded once per instance of the plugin: cuBLASLt and cuDNN, the largest by far, when a device is opened, the others to count
// devices.
struct Libraries {
  DriverApi api;
  int driver_version;  // 13000: CUDA 13.0
  std::unique_ptr<const Compiler> compiler;
  std::unique_ptr<const BlasApi> blas;  // null: no cuBLASLt, the generated kernels compute products
  std::unique_ptr<const DnnApi> dnn;    // null: no cuDNN, convolutions are products
  Ways ways = {};                       // of those that were chosen, what the libraries allow
};

// Whether an environment variable is set, and not to 0.
bool is_set(const char* name);

struct DeviceFacts : device::Facts {
  CUdevice id;
  int capability;  // 90: 9.0
  bool memory_pools;
};

class Platform : public device::Platform {
 public:
  explicit Platform(SearchPath path);
  size_t device_count() const override { return devices_.size(); }
  const std::string& why_no_device() const override { return why_no_device_; }
  std::unique_ptr<device::Driver> open(size_t ordinal) override;

 private:
  const SearchPath path_;
  std::unique_ptr<Libraries> libraries_;
  std::vector<DeviceFacts> devices_;
  std::once_flag opened_;
  std::string why_no_device_;
};

}  // namespace ltc::cuda
