// The devices that OpenCL offers, in the order of the plugin's ordinals.
#pragma once
#include <CL/cl.h>

#include <string>
#include <vector>

#include "device/driver.h"

namespace ltc::opencl {

struct DeviceFacts : device::Facts {
  cl_platform_id platform;
  cl_device_id id;
  cl_device_type type;
  std::string platform_name;
};

// GPUs first, then other accelerators, then CPUs. LTC_OPENCL_DEVICE narrows the list: a number, its place in the whole list, or a
// part of the device's or platform's name, in any case. Empty where there is none; then `why` says so in one sentence.
std::vector<DeviceFacts> find_devices(const std::string& setting, std::string& why);

}  // namespace ltc::opencl
