#include "core/compile/lowering/target.h"

#include <dlfcn.h>

#include <filesystem>

#include "core/base/bytes.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/host/plugin.h"

namespace ltc {
namespace {

// Tells a library from another build of it that has the same version.
std::string stamp_of(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? "" : cat(size, '@', time.time_since_epoch().count());
}

std::string core_stamp() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&core_stamp), &info) && info.dli_fname ? stamp_of(info.dli_fname) : "";
}

}  // namespace

std::string device_key(const CompileTarget& target) {
  host::PluginDevice& device = target.device;
  const TypeDemotion& demotion = target.demotion;
  static const std::string core = core_stamp();
  const host::Plugin& plugin = device.plugin();
  const host::PluginInfo info = plugin.describe();
  ByteWriter out;
  for (const std::string& part : {core, plugin.name(), info.version, info.build_id, stamp_of(plugin.path()),
                                  device.info().fingerprint, env::get(env::kClaims), env::get(env::kEffort)})
    out.text(part);
  for (uint32_t dtype = 1; dtype < kDTypeCount; ++dtype) {
    out.number(static_cast<uint32_t>(demotion.storage_dtype(static_cast<DType>(dtype))));
    out.number(static_cast<uint32_t>(demotion.compute_dtype(static_cast<DType>(dtype))));
  }
  return out.take();
}

std::string target_key(const CompileTarget& target) {
  ByteWriter out;
  out.number(target.precision);
  return device_key(target) + out.take();
}

}  // namespace ltc
