// The devices that OpenCL offers, in the order of the plugin's ordinals.
#pragma once
#include <CL/cl.h>

#include <string>
#include <vector>

namespace ltc::opencl {

struct DeviceFacts {
  cl_platform_id platform;
  cl_device_id id;
  cl_device_type type;
  std::string name, platform_name, driver;
  bool fp64, host_memory;  // host_memory: it works in the memory of the host
  uint64_t memory_bytes, largest_buffer_bytes;

  std::string fingerprint_text;  // all that compiled kernels depend on
};

// GPUs first, then other accelerators, then CPUs. LTC_OPENCL_DEVICE narrows the list: a number, its place in the whole list, or a
// part of the device's or platform's name, in any case. Empty where there is none; then `why` says so in one sentence.
std::vector<DeviceFacts> find_devices(std::string& why);

}  // namespace ltc::opencl
