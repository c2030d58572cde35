#include "core/host/registry.h"

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/host/search.h"

namespace ltc::host {

Registry& Registry::instance() {
  static auto* registry = new Registry();
  return *registry;
}

uint32_t Registry::device_count() {
  std::lock_guard lock(mutex_);
  load_once();
  return backends_.back().first_ordinal + backends_.back().info.device_count;
}

std::optional<uint32_t> Registry::loaded_device_count() {
  std::lock_guard lock(mutex_);
  if (!loaded_ || failure_) return std::nullopt;
  return backends_.back().first_ordinal + backends_.back().info.device_count;
}

std::unique_ptr<PluginDevice> Registry::open(uint32_t ordinal, const Options& options) {
  for (const Backend& backend : backends()) {
    const uint32_t own = ordinal - backend.first_ordinal;  // wraps for the backends after it
    if (own < backend.info.device_count) return backend.plugin->open_device(own, options);
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
  for (const std::string& entry : parse_backends(config.backends)) {
    auto plugin = find_plugin(entry, config.folders, config.elevated);
    PluginInfo info = plugin->describe();
    if (next + info.device_count > kMostDevices) {
      fail(Code::kUnsupported, "[", plugin->name(), "] has ", info.device_count, " devices behind ", next,
           " of the backends before it (", env::kBackend.name, "); PyTorch numbers at most ", kMostDevices);
    }
    log::info("[", plugin->name(), "] devices ", next, " to ", next + info.device_count - 1);
    backends.push_back({entry, std::move(plugin), std::move(info), next});
    next += backends.back().info.device_count;
  }
  std::vector<std::string> names;
  for (const Backend& backend : backends) names.push_back(backend.plugin->name());
  env::warn_of_strangers(names);
  return backends;
}

}  // namespace ltc::host
