// ltc-info: the plugins that this installation finds, their devices and their options.
#include <iostream>

#include "core/base/error.h"
#include "core/host/child_process.h"
#include "core/host/library.h"
#include "core/host/search.h"

namespace ltc::host {
namespace {

constexpr std::chrono::seconds kPatience{10};

constexpr const char* kUsage = R"(usage: ltc info [PLUGIN]

Lists the plugins in the folders of LTC_PLUGIN_PATH and in the package: what each is, how many devices it finds, and its options with their
defaults. PLUGIN: one only, by name, path, or an entry with options as in LTC_BACKEND. Without it, each is loaded in a process of its own: one
that crashes, ends its process or does not answer within 10 s is named.

An option is given as LTC_BACKEND="torchscript:kernels=sync", or by an environment variable: LTC_TORCHSCRIPT_KERNELS=sync.
)";

void print_options(const PluginInfo& info) {
  if (info.options.empty()) std::cout << "  no options\n";
  for (const PluginInfo::Option& option : info.options)
    std::cout << "  option " << option.name << "=" << option.default_value << "\n      " << option.about << "\n";
}

void print(const std::string& path, const PluginInfo& info, ltc_version abi) {
  std::cout << plugin_name(path) << ": " << info.name << " " << info.version;
  if (!info.build_id.empty()) std::cout << ", build " << info.build_id;
  if (!info.licence.empty()) std::cout << ", licence " << info.licence;
  std::cout << ", ABI " << abi.major << "." << abi.minor << "\n  " << path << "\n  ";
  if (info.device_count > 0) {
    std::cout << info.device_count << (info.device_count == 1 ? " device\n" : " devices\n");
  } else {
    std::cout << "no device: " << info.why_no_device << "\n";
  }
  print_options(info);
}

// In a child, since the library of a stranger may crash, end the process or hang.
void print_in_a_child(const std::string& path) {
  try {
    std::cout << in_a_child(
        [&] {
          try {
            const auto plugin = Plugin::load(path, with_environment({}, path));
            print(path, plugin->describe(), plugin->version());
          } catch (const Error& error) {
            std::cout << plugin_name(path) << ": refused\n  " << error.what() << "\n";
          }
        },
        kPatience);
  } catch (const Error& error) {
    std::cout << plugin_name(path) << ": refused, and dangerous to load\n  [" << plugin_name(path) << "] " << path << ": "
              << error.what() << "\n";
  }
}

int list_all(const std::vector<std::string>& folders) {
  const std::vector<std::string> files = plugin_files(folders);
  if (files.empty()) std::cout << "no plugins in:\n";
  for (const std::string& folder : folders) {
    if (files.empty()) std::cout << "  " << folder << "\n";
  }
  for (const std::string& path : files) {
    print_in_a_child(path);
    std::cout << "\n";
  }
  return files.empty() ? 1 : 0;
}

int run(const std::vector<std::string>& args) {
  if (args.size() > 1 || (!args.empty() && (args[0] == "--help" || args[0] == "-h"))) {
    std::cout << kUsage;
    return args.size() > 1 ? 2 : 0;
  }
  // This program lies in the package's folder `bin`, the plugins in its folder `plugins`.
  const auto folders = plugin_folders(own_folder() + "/../plugins", running_elevated());
  if (args.empty()) return list_all(folders);
  const auto plugin = find_plugin(parse_entry(args[0]), folders);
  print(plugin->path(), plugin->describe(), plugin->version());
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
