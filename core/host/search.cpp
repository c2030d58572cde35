#include "core/host/search.h"

#include <algorithm>
#include <filesystem>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/number.h"
#include "core/base/utf8.h"
#include "core/host/library.h"

namespace ltc::host {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kPrefix = "libltc_";
constexpr std::string_view kSuffix = ".so";

std::string_view trimmed(std::string_view text) {
  constexpr const char* kSpace = " \t\n\r";
  const size_t first = text.find_first_not_of(kSpace);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    if (const auto part = trimmed(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

bool is_path(std::string_view entry) { return entry.find('/') != entry.npos || entry.ends_with(kSuffix); }

std::vector<std::string> candidates(const std::string& entry, const std::vector<std::string>& folders) {
  if (is_path(entry)) return {entry};
  std::vector<std::string> paths;
  for (const auto& folder : folders) paths.push_back((fs::path(folder) / cat(kPrefix, entry, kSuffix)).string());
  return paths;
}

// The plugin files of a folder, sorted; none where there is no such folder.
std::vector<std::string> plugin_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (file.starts_with(kPrefix) && file.ends_with(kSuffix)) files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Numbers of devices joined by '+'; empty if the text is anything else.
std::vector<uint32_t> device_numbers(std::string_view text) {
  std::vector<uint32_t> numbers;
  for (const std::string& part : split(text, '+')) {
    uint32_t number = 0;
    if (!read_number(std::string_view(part), number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

// Loads `path` or says why not.
std::shared_ptr<Plugin> try_load(const std::string& path, const Options& given, std::string& why) {
  try {
    auto plugin = Plugin::load(path, with_environment(given, path));
    const PluginInfo info = plugin->describe();
    if (info.device_count > 0) return plugin;
    why = cat("[", plugin->name(), "] ", path,
              ": no devices: ", info.why_no_device.empty() ? "it does not say why" : info.why_no_device);
  } catch (const Error& e) {
    why = e.what();
    if (why.find(valid_utf8(path)) == why.npos) why = cat(path, ": ", why);
  }
  log::info("refused ", why);
  return nullptr;
}

}  // namespace

Options with_environment(Options options, const std::string& path) {
  Options result = options;
  for (auto& [name, value] : env::options_of(plugin_name(path))) {
    if (std::ranges::find(options, name, &Options::value_type::first) == options.end()) result.emplace_back(name, value);
  }
  return result;
}

BackendEntry parse_entry(std::string_view text) {
  // A path may hold a ':'; options begin behind one that a name and '=' follow.
  size_t colon = text.find(':');
  const auto begins_options = [&] {
    const std::string_view rest = text.substr(colon + 1);
    return !rest.empty() && rest.find('/') >= rest.find('=');
  };
  while (colon != text.npos && !begins_options()) colon = text.find(':', colon + 1);
  BackendEntry entry{std::string(trimmed(text.substr(0, colon)))};
  if (colon == text.npos) return entry;
  std::vector<std::string> seen;
  for (const std::string& option : split(text.substr(colon + 1), ',')) {
    const size_t equals = option.find('=');
    if (equals == option.npos || equals == 0) {
      fail(Code::kInvalidArgument, env::kBackend.name, ": '", option, "' of '", text, "' is no option: NAME=VALUE is");
    }
    const std::string name(trimmed(option.substr(0, equals))), value(trimmed(option.substr(equals + 1)));
    if (std::ranges::find(seen, name) != seen.end()) {
      fail(Code::kInvalidArgument, env::kBackend.name, ": the option '", name, "' is there twice: ", text);
    }
    seen.push_back(name);
    if (name == "device") entry.devices = device_numbers(value);
    if (name != "device" || entry.devices.empty()) entry.options.emplace_back(name, value);
  }
  return entry;
}

std::vector<BackendEntry> parse_backends(std::string_view list) {
  std::vector<BackendEntry> entries;
  for (const std::string& entry : split(list, ';')) entries.push_back(parse_entry(entry));
  if (entries.empty()) entries.push_back({kDefaultBackend});
  return entries;
}

bool running_elevated() { return env::is_elevated(); }

std::vector<std::string> plugin_folders(bool elevated) { return plugin_folders(own_folder() + "/plugins", elevated); }

std::vector<std::string> plugin_folders(const std::string& own, bool elevated) {
  const std::string from_user = env::get(env::kPluginPath);
  if (elevated && !from_user.empty()) {
    log::warn(env::kPluginPath.name, "=", from_user, " is ignored: this process has more rights than its user");
  }
  auto folders = elevated ? std::vector<std::string>() : split(from_user, ':');
  folders.push_back(own);
  return folders;
}

std::shared_ptr<Plugin> find_plugin(const BackendEntry& entry, const std::vector<std::string>& folders, bool elevated) {
  if (elevated && is_path(entry.plugin)) {
    fail(Code::kNotFound, "no backend '", entry.plugin,
         "': this process has more rights than its user, so it takes names and no paths");
  }
  std::string refused;
  for (const auto& path : candidates(entry.plugin, folders)) {
    std::string why;
    if (auto plugin = try_load(path, entry.options, why)) return plugin;
    refused += "\n  " + why;
  }
  const auto available = available_backends(folders);
  fail(Code::kNotFound, "no backend '", entry.plugin, "' (", env::kBackend.name, "). Tried:", refused,
       "\navailable backends: ", available.empty() ? "none in " + joined(folders) : joined(available));
}

std::vector<std::string> available_backends(const std::vector<std::string>& folders) {
  std::vector<std::string> names;
  for (const auto& folder : folders) {
    for (const auto& path : plugin_files(folder)) {
      names.push_back(plugin_name(path));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> plugin_files(const std::vector<std::string>& folders) {
  std::vector<std::string> files;
  for (const auto& folder : folders) std::ranges::copy(plugin_files(folder), std::back_inserter(files));
  return files;
}

}  // namespace ltc::host
