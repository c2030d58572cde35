#include "cuda/driver_api.h"

namespace ltc::cuda {

DriverApi DriverApi::load(const SearchPath& path) {
  const std::string names[] = {"libcuda.so.1"};
  const Library library = Library::open(names, path);
  if (!library) {
    throw Failure(LTC_NOT_FOUND,
                  "libcuda.so.1, which NVIDIA's driver brings, was not found; install the driver, and in a "
                  "container run it with the GPU passed through");
  }
  DriverApi api;
#define LTC_RESOLVE(name) library.resolve(#name, api.name);
  LTC_CUDA_FUNCTIONS(LTC_RESOLVE)
#undef LTC_RESOLVE
  return api;
}

std::string DriverApi::error_text(CUresult error) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(error, &name);
  cuGetErrorString(error, &text);
  return (name ? name : "error " + std::to_string(error)) + (text ? " (" + std::string(text) + ")" : "");
}

void DriverApi::fail(CUresult error, const std::string& what) const {
  throw Failure(code_of(error), what + " answered " + error_text(error));
}

ltc_code code_of(CUresult error) {
  constexpr int kContained = 226, kTensorMemoryLeak = 721;  // CUDA_ERROR_...: headers of CUDA 12.0 lack them
  switch (static_cast<int>(error)) {
    case CUDA_ERROR_OUT_OF_MEMORY: return LTC_RESOURCE_EXHAUSTED;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE: return LTC_NOT_FOUND;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION: return LTC_UNSUPPORTED;
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case kContained:
    case kTensorMemoryLeak:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_UNKNOWN: return LTC_DEVICE_LOST;
    default: return LTC_INTERNAL;
  }
}

}  // namespace ltc::cuda
