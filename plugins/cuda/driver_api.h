// The functions of libcuda.so.1 that are used, a row each, under the names of their ABI: those that drivers since CUDA 12.0 have.
#pragma once
#include <cuda.h>

#include <string>

#include "cuda/library.h"

#define LTC_CUDA_FUNCTIONS(X)          \
  X(cuInit)                            \
  X(cuDriverGetVersion)                \
  X(cuGetErrorName)                    \
  X(cuGetErrorString)                  \
  X(cuDeviceGetCount)                  \
  X(cuDeviceGet)                       \
  X(cuDeviceGetName)                   \
  X(cuDeviceGetAttribute)              \
  X(cuDeviceTotalMem_v2)               \
  X(cuDeviceCanAccessPeer)             \
  X(cuDevicePrimaryCtxRetain)          \
  X(cuDevicePrimaryCtxRelease_v2)      \
  X(cuCtxPushCurrent_v2)               \
  X(cuCtxPopCurrent_v2)                \
  X(cuStreamCreate)                    \
  X(cuStreamDestroy_v2)                \
  X(cuStreamSynchronize)               \
  X(cuStreamWaitEvent)                 \
  X(cuStreamBeginCapture_v2)           \
  X(cuStreamEndCapture)                \
  X(cuEventCreate)                     \
  X(cuEventDestroy_v2)                 \
  X(cuEventRecord)                     \
  X(cuEventQuery)                      \
  X(cuEventSynchronize)                \
  X(cuMemPoolCreate)                   \
  X(cuMemPoolDestroy)                  \
  X(cuMemPoolTrimTo)                   \
  X(cuMemPoolSetAccess)                \
  X(cuMemAllocFromPoolAsync)           \
  X(cuMemFreeAsync)                    \
  X(cuMemHostAlloc)                    \
  X(cuMemFreeHost)                     \
  X(cuMemcpyHtoDAsync_v2)              \
  X(cuMemcpyDtoHAsync_v2)              \
  X(cuMemcpyDtoDAsync_v2)              \
  X(cuMemcpyPeerAsync)                 \
  X(cuModuleLoadData)                  \
  X(cuModuleGetFunction)               \
  X(cuModuleUnload)                    \
  X(cuLaunchKernel)                    \
  X(cuGraphCreate)                     \
  X(cuGraphDestroy)                    \
  X(cuGraphAddKernelNode_v2)           \
  X(cuGraphAddChildGraphNode)          \
  X(cuGraphInstantiateWithFlags)       \
  X(cuGraphExecKernelNodeSetParams_v2) \
  X(cuGraphExecDestroy)                \
  X(cuGraphLaunch)

namespace ltc::cuda {

struct DriverApi {
#define LTC_MEMBER(name) decltype(&::name) name = nullptr;
  LTC_CUDA_FUNCTIONS(LTC_MEMBER)
#undef LTC_MEMBER

  // Opens the driver's library. Throws NOT_FOUND where there is none, or an old one.
  static DriverApi load(const SearchPath& path);

  // "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  std::string error_text(CUresult error) const;
  // Throws unless the call succeeded. `what`: the function that was called, and for what.
  void check(CUresult error, const char* what) const {
    if (error != CUDA_SUCCESS) fail(error, what);
  }
  [[noreturn]] void fail(CUresult error, const std::string& what) const;
};

// Errors after which nothing works on the device any more are DEVICE_LOST: those of which CUDA says so, and what drivers answer
// for a GPU that is there no more, which is CUDA_ERROR_UNKNOWN or CUDA_ERROR_DEVICE_UNAVAILABLE.
ltc_code code_of(CUresult error);

}  // namespace ltc::cuda
