#include "opencl/platform.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace ltc::opencl {
namespace {

template <typename T>
T device_value(cl_device_id device, cl_device_info what) {
  T value{};
  clGetDeviceInfo(device, what, sizeof value, &value, nullptr);
  return value;
}

std::string device_text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  if (clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  clGetDeviceInfo(device, what, size, text.data(), nullptr);
  return text.c_str();
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  size_t size = 0;
  if (clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  clGetPlatformInfo(platform, what, size, text.data(), nullptr);
  return text.c_str();
}

DeviceFacts facts_of(cl_platform_id platform, cl_device_id id) {
  DeviceFacts facts{};
  facts.platform = platform;
  facts.id = id;
  facts.type = device_value<cl_device_type>(id, CL_DEVICE_TYPE);
  facts.name = device_text(id, CL_DEVICE_NAME);
  facts.platform_name = platform_text(platform, CL_PLATFORM_NAME);
  facts.fp64 = device_value<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  facts.host_memory = device_value<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  facts.memory_bytes = device_value<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.largest_buffer_bytes = device_value<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  facts.fingerprint =
      facts.platform_name + ", " + facts.name + ", driver " + device_text(id, CL_DRIVER_VERSION) + ", opencl plugin 0.1.0";
  return facts;
}

std::vector<DeviceFacts> all_devices() {
  std::vector<DeviceFacts> found;
  cl_uint platform_count = 0;
  if (clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS) return found;
  std::vector<cl_platform_id> platforms(platform_count);
  clGetPlatformIDs(platform_count, platforms.data(), nullptr);
  for (const cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    for (const cl_device_id id : ids) {
      if (device_value<cl_bool>(id, CL_DEVICE_AVAILABLE) && device_value<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE)) {
        found.push_back(facts_of(platform, id));
      }
    }
  }
  const auto rank = [](const DeviceFacts& facts) {
    return facts.type & CL_DEVICE_TYPE_GPU ? 0 : facts.type & CL_DEVICE_TYPE_CPU ? 2 : 1;
  };
  std::ranges::stable_sort(found, {}, rank);
  return found;
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 6 && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

}  // namespace

std::vector<DeviceFacts> find_devices(const std::string& setting, std::string& why) {
  std::vector<DeviceFacts> devices = all_devices();
  if (devices.empty()) {
    why = "no OpenCL device; install a driver, for example the CPU's: apt-get install pocl-opencl-icd";
  } else if (!setting.empty()) {
    const std::string wanted = lower_case(setting);
    const size_t count = devices.size();
    std::vector<DeviceFacts> chosen;
    for (size_t i = 0; i < count; ++i) {
      const bool named = lower_case(devices[i].name + "\n" + devices[i].platform_name).find(wanted) != std::string::npos;
      if (is_number(wanted) ? std::to_string(i) == wanted : named) chosen.push_back(devices[i]);
    }
    if (chosen.empty()) {
      why = "the option device=" + setting + " names none of the " + std::to_string(count) + " OpenCL devices:";
      for (size_t i = 0; i < count; ++i) why += " " + std::to_string(i) + " " + devices[i].name + ";";
    }
    devices = std::move(chosen);
  }
  return devices;
}

}  // namespace ltc::opencl
