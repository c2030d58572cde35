// For tests: the emulated device through the plugin's own tables of functions.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "cuda/driver_api.h"

namespace ltc::emulator {

// A device with streams and a pool. A context that met an error is well again once its last TestDevice has gone.
class TestDevice {
 public:
  explicit TestDevice(int ordinal = 0);
  ~TestDevice();
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  static const cuda::DriverApi& api();
  // PTX of CUDA C++; empty where there is no NVRTC.
  static std::string compile(const std::string& source);

  // The kernel `k` of the text. It stays until the device goes.
  CUfunction load(const std::string& ptx);
  CUdeviceptr allocate(size_t bytes, CUstream on = nullptr);
  void* pinned(size_t bytes);
  template <typename T>
  CUdeviceptr upload(const std::vector<T>& values) {
    const CUdeviceptr memory = allocate(values.size() * sizeof(T));
    EXPECT_EQ(api().cuMemcpyHtoDAsync_v2(memory, values.data(), values.size() * sizeof(T), stream), CUDA_SUCCESS);
    return memory;
  }
  // Waits for the first stream.
  template <typename T>
  CUresult download(std::vector<T>& to, CUdeviceptr from) {
    return api().cuMemcpyDtoHAsync_v2(to.data(), from, to.size() * sizeof(T), stream);
  }

  struct Shape {
    unsigned blocks = 1, threads = 1;
  };
  template <typename... Arguments>
  CUresult launch_on(CUstream on, CUfunction kernel, Shape shape, Arguments... arguments) {
    void* pointers[] = {&arguments...};
    return api().cuLaunchKernel(kernel, shape.blocks, 1, 1, shape.threads, 1, 1, 0, on, pointers, nullptr);
  }
  template <typename... Arguments>
  CUresult launch(CUfunction kernel, Shape shape, Arguments... arguments) {
    return launch_on(stream, kernel, shape, arguments...);
  }

  CUcontext context = nullptr;
  CUstream stream = nullptr, other = nullptr;
  CUmemoryPool pool = nullptr;

 private:
  const int ordinal_;
  std::vector<CUmodule> modules_;
  std::vector<void*> pinned_;
};

}  // namespace ltc::emulator
