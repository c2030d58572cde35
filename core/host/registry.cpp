#include "core/host/registry.h"

#include <numeric>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/host/search.h"

namespace ltc::host {

namespace {

// The plugin's ordinals that an entry asks for.
std::vector<uint32_t> used_devices(const BackendEntry& entry, const Plugin& plugin, const PluginInfo& info) {
  for (const uint32_t device : entry.devices) {
    if (device < info.device_count) continue;
    fail(Code::kInvalidArgument, "[", plugin.name(), "] no device ", device, " (", env::kBackend.name, "): the plugin has ",
         info.device_count, ", counted from 0");
  }
  if (!entry.devices.empty()) return entry.devices;
  std::vector<uint32_t> all(info.device_count);
  std::iota(all.begin(), all.end(), 0u);
  return all;
}

}  // namespace

Registry& Registry::instance() {
  static auto* registry = new Registry();
  return *registry;
}

uint32_t Registry::device_count() {
  std::lock_guard lock(mutex_);
  load_once();
  return backends_.back().first_ordinal + static_cast<uint32_t>(backends_.back().devices.size());
}

std::optional<uint32_t> Registry::loaded_device_count() {
  std::lock_guard lock(mutex_);
  if (!loaded_ || failure_) return std::nullopt;
  return backends_.back().first_ordinal + static_cast<uint32_t>(backends_.back().devices.size());
}

std::unique_ptr<PluginDevice> Registry::open(uint32_t ordinal) {
  for (const Backend& backend : backends()) {
    const uint32_t own = ordinal - backend.first_ordinal;  // wraps for the backends after it
    if (own < backend.devices.size()) return backend.plugin->open_device(backend.devices[own]);
  }
  fail(Code::kInvalidArgument, "no device ", ordinal, ": there are ", device_count());
}

std::vector<Backend> Registry::backends() {
  std::lock_guard lock(mutex_);
  load_once();
  return backends_;
}

void Registry::reset() {
  std::lock_guard lock(mutex_);
  backends_.clear();
  failure_.reset();
  loaded_ = false;
}

void Registry::load_once() {
  if (!loaded_) {
    try {
      backends_ = load();
    } catch (const Error& e) {
      failure_ = {e.code(), e.what()};
    }
    loaded_ = true;
  }
  if (failure_) throw Error(failure_->first, failure_->second);
}

std::vector<Backend> Registry::load() const {
  const bool elevated = running_elevated();
  const Config config = config_ ? *config_ : Config{env::get(env::kBackend), plugin_folders(elevated), elevated};
  std::vector<Backend> backends;
  uint32_t next = 0;
  for (const BackendEntry& entry : parse_backends(config.backends)) {
    auto plugin = find_plugin(entry, config.folders, config.elevated);
    PluginInfo info = plugin->describe();
    std::vector<uint32_t> devices = used_devices(entry, *plugin, info);
    const auto count = static_cast<uint32_t>(devices.size());
    if (next + count > kMostDevices) {
      fail(Code::kUnsupported, "[", plugin->name(), "] has ", count, " devices behind ", next, " of the backends before it (",
           env::kBackend.name, "); PyTorch numbers at most ", kMostDevices);
    }
    log::info("[", plugin->name(), "] devices ", next, " to ", next + count - 1);
    backends.push_back({std::move(plugin), std::move(info), std::move(devices), next});
    next += count;
  }
  std::vector<std::string> names = available_backends(config.folders);
  for (const Backend& backend : backends) names.push_back(backend.plugin->name());
  env::warn_of_strangers(names);
  return backends;
}

}  // namespace ltc::host
