// The facts that a library states about itself and its devices.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "pjrt/objects.h"

namespace ltc::pjrt {
namespace {

// The instructions of this processor, for which programs are compiled that run on it.
std::string host_processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags") || line.starts_with("Features")) return std::to_string(std::hash<std::string>()(line));
  }
  return "unknown";
}

// The file, told apart from others of its name.
std::string identity(const std::string& path) {
  std::error_code ignored;
  return path + " " + std::to_string(std::filesystem::file_size(path, ignored)) + " " +
         std::to_string(std::filesystem::last_write_time(path, ignored).time_since_epoch().count());
}

uint64_t memory_of(const Library& library, PJRT_Device* device, bool is_host) {
  const auto stats = PJRT_TRY(library, Device_MemoryStats, .device = device);
  if (stats && stats->bytes_limit_is_set && stats->bytes_limit > 0) return static_cast<uint64_t>(stats->bytes_limit);
  return is_host ? static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE)) : 0;
}

}  // namespace

Client::Client(std::string path, size_t cpu_devices) : library(std::move(path)) {
  client = PJRT_OWN(library, Client, client, PJRT_CALL(library, Client_Create).client);
  const auto platform = PJRT_CALL(library, Client_PlatformName, .client = client.get());
  const auto version = PJRT_CALL(library, Client_PlatformVersion, .client = client.get());
  const auto list = PJRT_CALL(library, Client_AddressableDevices, .client = client.get());
  const std::string platform_name(platform.platform_name, platform.platform_name_size);
  const bool is_host = platform_name == "cpu";
  const char* flags = std::getenv("XLA_FLAGS");
  const std::string common = "pjrt 1, " + library.version() + ", " + identity(library.path()) + ", " +
                             std::string(version.platform_version, version.platform_version_size) + ", " +
                             (is_host ? host_processor() : platform_name) + ", " + (flags ? flags : "") + ", ";
  const size_t count = std::min(list.num_addressable_devices, is_host ? cpu_devices : SIZE_MAX);
  for (size_t i = 0; i < count; ++i) {
    PJRT_Device* const device = list.addressable_devices[i];
    PJRT_DeviceDescription* const text = PJRT_CALL(library, Device_GetDescription, .device = device).device_description;
    const auto kind = PJRT_CALL(library, DeviceDescription_Kind, .device_description = text);
    const int64_t id = PJRT_CALL(library, DeviceDescription_Id, .device_description = text).id;
    const std::string name(kind.device_kind, kind.device_kind_size);
    devices.push_back(
        {device, id, "PJRT " + name, common + name + " " + std::to_string(id), memory_of(library, device, is_host), is_host});
  }
}

}  // namespace ltc::pjrt
