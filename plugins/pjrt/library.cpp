#include "pjrt/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

namespace ltc::pjrt {
namespace {

// Python packages with a library of PJRT, in the order in which they are looked for.
struct Package {
  const char *name, *file;
};
constexpr Package kPackages[] = {
    {"libtpu", "libtpu/libtpu.so"},
    {"jax-cuda13-pjrt", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"jax-cuda12-pjrt", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
    {"jax-rocm7-pjrt", "jax_plugins/xla_rocm7/xla_rocm_plugin.so"},
    {"lammps-jax-pjrt-cpu", "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so"},
    {"fastatomstruct-xla-cpu", "fastatomstruct_xla_cpu/libpjrt_cpu.so"},
    {"xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
};

constexpr std::pair<PJRT_Error_Code, ltc_code> kCodes[] = {{PJRT_Error_Code_INVALID_ARGUMENT, LTC_INVALID_ARGUMENT},
                                                           {PJRT_Error_Code_NOT_FOUND, LTC_NOT_FOUND},
                                                           {PJRT_Error_Code_UNIMPLEMENTED, LTC_UNSUPPORTED},
                                                           {PJRT_Error_Code_RESOURCE_EXHAUSTED, LTC_RESOURCE_EXHAUSTED},
                                                           {PJRT_Error_Code_CANCELLED, LTC_CANCELLED},
                                                           {PJRT_Error_Code_DEADLINE_EXCEEDED, LTC_TIMEOUT},
                                                           {PJRT_Error_Code_DATA_LOSS, LTC_DATA_CORRUPT},
                                                           {PJRT_Error_Code_OUT_OF_RANGE, LTC_OUT_OF_RANGE},
                                                           {PJRT_Error_Code_UNAVAILABLE, LTC_DEVICE_LOST}};

// The folders of Python packages: those of the running Python, known by the libraries that it has loaded, and of an environment.
std::set<std::string> package_folders() {
  std::set<std::string> folders;
  const auto add = [](dl_phdr_info* info, size_t, void* to) {
    const std::string path(info->dlpi_name);
    for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
      const size_t at = path.find(name);
      if (at != path.npos) static_cast<std::set<std::string>*>(to)->insert(path.substr(0, at + name.size()));
    }
    return 0;
  };
  dl_iterate_phdr(add, &folders);
  const char* environment = std::getenv("VIRTUAL_ENV");
  std::error_code ignored;
  for (const auto& python : std::filesystem::directory_iterator(std::string(environment ? environment : "") + "/lib", ignored)) {
    if (environment) folders.insert(python.path().string() + "/site-packages/");
  }
  return folders;
}

}  // namespace

std::string find_library(const std::string& setting) {
  if (setting.find('/') != setting.npos) return setting;
  std::string names;
  std::error_code ignored;
  const std::set<std::string> folders = package_folders();
  for (const Package& package : kPackages) {
    (names += names.empty() ? "" : ", ") += package.name;
    if (!setting.empty() && setting != package.name) continue;
    for (const std::string& folder : folders) {
      if (std::filesystem::exists(folder + package.file, ignored)) return folder + package.file;
    }
  }
  throw Failure(LTC_NOT_FOUND,
                "no library of PJRT" + (setting.empty() ? "" : " called '" + setting + "'") +
                    " is installed; set the option library to a path, or install one of these Python packages: " + names);
}

// Within a major version structs and the table only grow, so what both sides know is used.
Library::Library(std::string path) : path_(std::move(path)) {
  void* handle = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays: threads of it may run until the process ends
  if (!handle) throw Failure(LTC_NOT_FOUND, std::string("cannot load the library of PJRT: ") + dlerror());
  const auto get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(handle, "GetPjrtApi"));
  const PJRT_Api* theirs = get ? get() : nullptr;
  if (!theirs) throw Failure(LTC_NOT_FOUND, path_ + " is no library of PJRT: it has no GetPjrtApi");
  std::memcpy(static_cast<void*>(&api_), theirs, std::min<size_t>(theirs->struct_size, PJRT_Api_STRUCT_SIZE));
  if (api_.pjrt_api_version.major_version != PJRT_API_MAJOR || !api_.PJRT_Error_GetCode || !api_.PJRT_Event_OnReady) {
    throw Failure(LTC_UNSUPPORTED, path_ + " speaks PJRT " + version() + ", this plugin " + std::to_string(PJRT_API_MAJOR) + "." +
                                       std::to_string(PJRT_API_MINOR));
  }
  static std::mutex mutex;
  static std::set<const PJRT_Api*> initialised;
  const std::lock_guard lock(mutex);
  if (!initialised.insert(theirs).second) return;
  PJRT_CALL(*this, Plugin_Initialize);
}

std::string Library::version() const {
  return std::to_string(api_.pjrt_api_version.major_version) + "." + std::to_string(api_.pjrt_api_version.minor_version);
}

plugin::Error Library::take(PJRT_Error* error) const noexcept {
  auto code = PJRT_STRUCT(Error_GetCode_Args, .error = error);
  auto message = PJRT_STRUCT(Error_Message_Args, .error = error);
  auto destroy = PJRT_STRUCT(Error_Destroy_Args, .error = error);
  (void)api_.PJRT_Error_GetCode(&code);
  api_.PJRT_Error_Message(&message);
  plugin::Error taken;
  const auto known = std::ranges::find(kCodes, code.code, &std::pair<PJRT_Error_Code, ltc_code>::first);
  if (known != std::end(kCodes)) taken.code = known->second;
  try {
    taken.message.assign(message.message, message.message_size);
  } catch (...) {  // no memory for it
  }
  api_.PJRT_Error_Destroy(&destroy);
  return taken;
}

}  // namespace ltc::pjrt
