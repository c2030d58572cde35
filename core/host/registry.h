// The backends of this process and the ordinals of their devices.
//
// Nothing is loaded before the first question. The entries of LTC_BACKEND are then loaded in order; each gets its own plugin
// instance, also where two name the same plugin, and contributes its devices to one row of ordinals: "opencl;torchscript" on a
// machine with two OpenCL devices gives ltc:0 and ltc:1 to opencl and ltc:2 to torchscript.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/host/plugin.h"

namespace ltc::host {

struct Backend {
  std::shared_ptr<Plugin> plugin;
  PluginInfo info;
  std::vector<uint32_t> devices;  // the plugin's ordinals that are used
  uint32_t first_ordinal;         // of devices.size()
};

// Threads: any member from any thread; the first question loads, the others wait for it.
// Errors: a load that failed is not tried again before reset(): every question gives the same error. One bad entry fails the
// whole list,
//   since leaving it out would give the ordinals of the others to the wrong devices.
class Registry {
 public:
  struct Config {
    std::string backends;              // as LTC_BACKEND
    std::vector<std::string> folders;  // to search
    bool elevated = false;
  };

  // The one that reads the environment. Never destroyed: plugins are closed by reset(), at a moment of the caller's choice, and
  // not among the destructors of static objects.
  static Registry& instance();

  Registry() = default;
  explicit Registry(Config config) : config_(std::move(config)) {}

  uint32_t device_count();
  std::optional<uint32_t> loaded_device_count();  // empty if nothing is loaded yet; loads nothing
  std::unique_ptr<PluginDevice> open(uint32_t ordinal);

  // All of them, in the order of ordinals.
  std::vector<Backend> backends();

  // Forgets the backends, or the failure to load them. Their plugins close with their last open device.
  void reset();

 private:
  void load_once();  // with mutex_ held
  std::vector<Backend> load() const;

  std::mutex mutex_;
  std::optional<Config> config_;  // empty: the environment, read at the load
  bool loaded_ = false;
  std::vector<Backend> backends_;
  std::optional<std::pair<Code, std::string>> failure_;
};

}  // namespace ltc::host
