// ltc-info: this installation, the variables that are set, and the plugins that are found with their devices and options.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/disk_cache.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/number.h"
#include "core/base/utf8.h"
#include "core/host/child_process.h"
#include "core/host/library.h"
#include "core/host/search.h"

namespace ltc::host {
namespace {

constexpr int kWrongUse = 2;

constexpr const char* kUsage = R"(usage: ltc info [PLUGIN] [--json] [--timeout SECONDS]

Lists the version of ltc, the variables LTC_* that are set, the programs kept on disk, and the plugins in the folders of LTC_PLUGIN_PATH and in
the package: what each is, its devices with their names and memory, and its options with their defaults. Each plugin is loaded in a process of
its own: one that crashes, ends its process or does not answer in time is named. A device that cannot be opened says why.

  PLUGIN             only this plugin: a name, a path, or an entry with options as in LTC_BACKEND
  --json             write JSON
  --timeout SECONDS  how long a plugin has to answer, with its devices (10)

An option is given as LTC_BACKEND="torchscript:kernels=sync", or by an environment variable: LTC_TORCHSCRIPT_KERNELS=sync.

Exit code: 0 all is well, 1 no plugin is found or the one that was named is refused, 2 wrong use.
)";

struct Options {
  std::string plugin = {};  // empty: all
  bool json = false;
  std::chrono::seconds timeout{10};
  bool help = false;
};

// Empty for arguments that are wrong.
std::optional<Options> options_of(const std::vector<std::string>& args) {
  Options options;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--json") {
      options.json = true;
    } else if (args[i] == "--help" || args[i] == "-h") {
      options.help = true;
    } else if (args[i] == "--timeout") {
      int seconds = 0;
      if (++i == args.size() || !read_number(args[i], seconds) || seconds < 1) return std::nullopt;
      options.timeout = std::chrono::seconds(seconds);
    } else if (args[i].starts_with("-") || !options.plugin.empty()) {
      return std::nullopt;
    } else {
      options.plugin = args[i];
    }
  }
  return options;
}

// JSON from values that are JSON.
std::string object(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string text;
  for (const auto& [name, value] : members) text += cat(text.empty() ? "" : ", ", json_string(name), ": ", value);
  return cat("{", text, "}");
}

std::string array(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += cat(text.empty() ? "" : ", ", value);
  return cat("[", text, "]");
}

std::string version_text(ltc_version version) { return cat(version.major, ".", version.minor); }

struct Device {
  DeviceInfo info = {};
  std::string refusal = {};  // why it cannot be opened; else empty
};

// `refusal`: why none is to be opened; empty: they are opened one after the other.
std::vector<Device> devices_of(Plugin& plugin, uint32_t count, const std::string& refusal) {
  std::vector<Device> devices;
  for (uint32_t i = 0; i < count; ++i) {
    Device& device = devices.emplace_back(DeviceInfo(), refusal);
    if (!refusal.empty()) continue;
    try {
      device.info = plugin.open_device(i)->info();
    } catch (const Error& error) {
      device.refusal = error.what();
    }
  }
  return devices;
}

std::string as_text(const Device& device) {
  if (!device.refusal.empty()) return cat("cannot be opened: ", device.refusal);
  return cat(device.info.name,
             device.info.memory_bytes == 0 ? "" : ", " + size_text(static_cast<int64_t>(device.info.memory_bytes)));
}

std::string as_json(const Device& device) {
  if (!device.refusal.empty()) return object({{"refused", json_string(device.refusal)}});
  return object({{"name", json_string(device.info.name)}, {"memory_bytes", cat(device.info.memory_bytes)}});
}

std::string as_text(const std::string& path, const PluginInfo& info, const std::vector<Device>& devices, ltc_version abi) {
  std::string text = cat(plugin_name(path), ": ", info.name, " ", info.version);
  if (!info.build_id.empty()) text += cat(", build ", info.build_id);
  if (!info.licence.empty()) text += cat(", licence ", info.licence);
  text += cat(", ABI ", version_text(abi), "\n  ", path, "\n  ");
  if (info.device_count > 0) {
    text += cat(info.device_count, info.device_count == 1 ? " device\n" : " devices\n");
  } else {
    text += cat("no device: ", info.why_no_device, "\n");
  }
  for (size_t i = 0; i < devices.size(); ++i) text += cat("  device ", i, ": ", as_text(devices[i]), "\n");
  if (info.options.empty()) text += "  no options\n";
  for (const PluginInfo::Option& option : info.options)
    text += cat("  option ", option.name, "=", option.default_value, "\n      ", option.about, "\n");
  return text;
}

std::string as_json(const std::string& path, const PluginInfo& info, const std::vector<Device>& devices, ltc_version abi) {
  std::vector<std::string> options, opened;
  for (const Device& device : devices) opened.push_back(as_json(device));
  for (const auto& [name, default_value, about] : info.options) {
    options.push_back(
        object({{"name", json_string(name)}, {"default", json_string(default_value)}, {"about", json_string(about)}}));
  }
  return object({{"plugin", json_string(plugin_name(path))},
                 {"path", json_string(path)},
                 {"name", json_string(info.name)},
                 {"version", json_string(info.version)},
                 {"build_id", json_string(info.build_id)},
                 {"licence", json_string(info.licence)},
                 {"abi", json_string(version_text(abi))},
                 {"devices", cat(info.device_count)},
                 {"device_list", array(opened)},
                 {"why_no_device", json_string(info.why_no_device)},
                 {"options", array(options)}});
}

std::string described(Plugin& plugin, bool json, const std::string& refusal) {
  const PluginInfo info = plugin.describe();
  const std::vector<Device> devices = devices_of(plugin, info.device_count, refusal);
  return json ? as_json(plugin.path(), info, devices, plugin.version()) : as_text(plugin.path(), info, devices, plugin.version());
}

std::string refused(const std::string& path, const std::string& why, bool is_dangerous, bool json) {
  if (json) {
    return object({{"plugin", json_string(plugin_name(path))},
                   {"path", json_string(path)},
                   {"refused", json_string(why)},
                   {"dangerous", is_dangerous ? "true" : "false"}});
  }
  return cat(plugin_name(path), is_dangerous ? ": refused, and dangerous to load\n  " : ": refused\n  ", why, "\n");
}

// A plugin may print. Its text goes to standard error while this lives, so that standard output has ours only.
class PrintsToStderr {
 public:
  PrintsToStderr() : output_(::dup(STDOUT_FILENO)) { ::dup2(STDERR_FILENO, STDOUT_FILENO); }
  ~PrintsToStderr() {
    std::fflush(stdout);
    std::cout.flush();
    ::dup2(output_, STDOUT_FILENO);
    ::close(output_);
  }
  PrintsToStderr(const PrintsToStderr&) = delete;
  PrintsToStderr& operator=(const PrintsToStderr&) = delete;

 private:
  const int output_;
};

std::string loaded_and_described(const std::string& path, bool json, const std::string& refusal) {
  const PrintsToStderr guard;
  try {
    return described(*Plugin::load(path, with_environment({}, path)), json, refusal);
  } catch (const Error& error) {
    return refused(path, error.what(), false, json);
  }
}

// In a child, since the library of a stranger may crash, end the process or hang. One that does so with a device is described
// by another child, which opens none.
std::string described_in_a_child(const std::string& path, const Options& options, const std::string& refusal = "") {
  try {
    return in_a_child([&] { std::cout << loaded_and_described(path, options.json, refusal); }, options.timeout);
  } catch (const ChildError& error) {
    const bool is_of_device = error.slot.starts_with("device_");
    if (refusal.empty() && is_of_device) return described_in_a_child(path, options, error.what());
    return refused(path, cat("[", plugin_name(path), "] ", path, ": ", error.what()), true, options.json);
  }
}

// The description of the plugin that was named. Throws what its loading throws.
std::string described_alone(const BackendEntry& entry, const std::vector<std::string>& folders, const Options& options) {
  const auto told = [&](const std::string& refusal) {
    const PrintsToStderr guard;
    return described(*find_plugin(entry, folders), options.json, refusal);
  };
  std::string refusal;
  try {
    const auto try_it = [&] {
      try {
        std::cout << told("");
      } catch (const Error&) {  // thrown once more below
      }
    };
    const std::string text = in_a_child(try_it, options.timeout);
    if (!text.empty()) return text;
  } catch (const Error& error) {
    refusal = error.what();
  }
  return told(refusal);
}

// Warnings about the variables.
std::vector<std::string> problems(const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const auto& [name, value] : env::set_variables()) names.push_back(name);
  std::vector<std::string> told = env::strangers(names, available_backends(folders));
  try {
    env::check();
  } catch (const Error& error) {
    told.push_back(error.what());
  }
  return told;
}

// Empty where no programs are kept on disk.
std::optional<DiskCache::Contents> cache_contents() {
  try {
    DiskCache* const cache = DiskCache::instance();
    return cache ? std::optional(cache->contents()) : std::nullopt;
  } catch (const Error&) {  // of LTC_CACHE: problems() tells it
    return std::nullopt;
  }
}

std::string installation_text(const std::vector<std::string>& folders) {
  std::string text = cat("ltc ", LTC_VERSION, ", ABI ", version_text({LTC_ABI_MAJOR, LTC_ABI_MINOR}), "\n");
  for (const auto& [name, value] : env::set_variables()) text += cat("  ", name, "=", value, "\n");
  for (const std::string& problem : problems(folders)) text += cat("  ", problem, "\n");
  const auto cache = cache_contents();
  if (!cache) return text + "  no programs are kept on disk\n";
  return cat(text, "  ", cache->programs, " programs, ", cache->bytes, " bytes in ", cache->folder.string(), "\n");
}

std::string installation_json(const std::vector<std::string>& folders, const std::vector<std::string>& plugins) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, value] : env::set_variables()) variables.emplace_back(name, json_string(value));
  std::vector<std::string> warnings, places;
  for (const std::string& problem : problems(folders)) warnings.push_back(json_string(problem));
  for (const std::string& folder : folders) places.push_back(json_string(folder));
  std::string kept = "null";
  if (const auto cache = cache_contents()) {
    kept = object(
        {{"folder", json_string(cache->folder.string())}, {"programs", cat(cache->programs)}, {"bytes", cat(cache->bytes)}});
  }
  return object({{"version", json_string(LTC_VERSION)},
                 {"abi", json_string(version_text({LTC_ABI_MAJOR, LTC_ABI_MINOR}))},
                 {"variables", object(variables)},
                 {"warnings", array(warnings)},
                 {"cache", kept},
                 {"folders", array(places)},
                 {"plugins", array(plugins)}});
}

int list_all(const std::vector<std::string>& folders, const Options& options) {
  const std::vector<std::string> files = plugin_files(folders);
  const bool json = options.json;
  std::vector<std::string> plugins;
  if (!json) std::cout << installation_text(folders) << "\n" << std::flush;
  for (const std::string& path : files) {
    plugins.push_back(described_in_a_child(path, options));
    if (!json) std::cout << plugins.back() << "\n" << std::flush;
  }
  if (json) std::cout << installation_json(folders, plugins) << "\n";
  if (!json && files.empty()) {
    std::cout << "no plugins in:\n";
    for (const std::string& folder : folders) std::cout << "  " << folder << "\n";
  }
  return files.empty() ? 1 : 0;
}

int run(const std::vector<std::string>& args) {
  const std::optional<Options> options = options_of(args);
  if (!options || options->help) {
    (options ? std::cout : std::cerr) << kUsage;
    return options ? 0 : kWrongUse;
  }
  // This program lies in the package's folder `bin`, the plugins in its folder `plugins`.
  const auto folders = plugin_folders(own_folder() + "/../plugins", running_elevated());
  if (options->plugin.empty()) return list_all(folders, *options);
  const std::string text = described_alone(parse_entry(options->plugin), folders, *options);
  std::cout << (options->json ? installation_json(folders, {text}) + "\n" : text);
  return 0;
}

}  // namespace
}  // namespace ltc::host

int main(int argc, char** argv) {
  try {
    return ltc::host::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "ltc info: " << error.what() << "\n";
    return 1;
  }
}
