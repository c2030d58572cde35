// The libraries of CUDA that the plugin uses, and what is known of a device.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cuda/blas.h"
#include "cuda/compiler.h"
#include "cuda/dnn.h"
#include "cuda/driver_api.h"
#include "cuda/lowering.h"
#include "cuda/nccl.h"
#include "device/driver.h"

namespace ltc::cuda {

// Loaded once per instance of the plugin: cuBLASLt and cuDNN, the largest by far, when a device is opened, the others to count
// devices.
struct Libraries {
  DriverApi api;
  int driver_version;  // 13000: CUDA 13.0
  std::unique_ptr<const Compiler> compiler;
  std::unique_ptr<const BlasApi> blas;  // null: no cuBLASLt, the generated kernels compute products
  std::unique_ptr<const DnnApi> dnn;    // null: no cuDNN, convolutions are products
  std::unique_ptr<const NcclApi> nccl;  // null: no NCCL, the host carries out collectives
  Features features = {};               // of those that were chosen, what the libraries allow
};

// Whether an environment variable is set, and not to 0.
inline bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value && std::strcmp(value, "0") != 0;
}

struct DeviceFacts : device::Facts {
  CUdevice id;
  int capability;  // 90: 9.0
  bool memory_pools;
};

}  // namespace ltc::cuda
