#include "cuda/emulator/test_device.h"

#include <cstdlib>

#include "cuda/compiler.h"

namespace ltc::emulator {

TestDevice::TestDevice(int ordinal) : ordinal_(ordinal) {
  api().check(api().cuDevicePrimaryCtxRetain(&context, ordinal), "cuDevicePrimaryCtxRetain");
  api().check(api().cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
  for (CUstream* made : {&stream, &other}) api().check(api().cuStreamCreate(made, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  api().check(api().cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
}

TestDevice::~TestDevice() {
  for (const CUstream made : {stream, other}) api().cuStreamDestroy_v2(made);
  for (const CUmodule module : modules_) api().cuModuleUnload(module);
  for (void* memory : pinned_) api().cuMemFreeHost(memory);
  api().cuMemPoolDestroy(pool);
  CUcontext popped = nullptr;
  api().cuCtxPopCurrent_v2(&popped);
  api().cuDevicePrimaryCtxRelease_v2(ordinal_);
}

const cuda::DriverApi& TestDevice::api() {
  static const cuda::DriverApi loaded = [] {
    setenv("CUDA_EMULATOR_MEMORY", "64", 0);
    setenv("CUDA_EMULATOR_DEVICES", "2", 0);
    return cuda::DriverApi::load({{LTC_CUDA_EMULATOR_FOLDER}, {}});
  }();
  return loaded;
}

std::string TestDevice::compile(const std::string& source) {
  if (std::string(LTC_NVRTC_FOLDER).empty()) return {};
  static const cuda::Compiler compiler({{LTC_NVRTC_FOLDER}, {}}, 13);
  return compiler.compile(source, 99);
}

CUfunction TestDevice::load(const std::string& ptx) {
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  api().check(api().cuModuleLoadData(&module, ptx.c_str()), "cuModuleLoadData");
  modules_.push_back(module);
  api().check(api().cuModuleGetFunction(&kernel, module, "k"), "cuModuleGetFunction");
  return kernel;
}

CUdeviceptr TestDevice::allocate(size_t bytes, CUstream on) {
  CUdeviceptr memory = 0;
  api().check(api().cuMemAllocFromPoolAsync(&memory, bytes, pool, on ? on : stream), "cuMemAllocFromPoolAsync");
  return memory;
}

void* TestDevice::pinned(size_t bytes) {
  void* memory = nullptr;
  api().check(api().cuMemHostAlloc(&memory, bytes, 0), "cuMemHostAlloc");
  pinned_.push_back(memory);
  return memory;
}

}  // namespace ltc::emulator
