// Which file a backend's name stands for.
//
// LTC_BACKEND holds one entry or several separated by ';'. An entry is a name, looked up as libltc_<name>.so in each folder of
// LTC_PLUGIN_PATH and then in the folder `plugins` beside the library that contains this code; or a path, recognised by a '/' or
// by ending in ".so". Behind a ':' it may have options, separated by ',': "cuda:with=activations,device=1". Those of the plugin
// go to its entry, after what the environment has (base/env.h). `device` with numbers, joined by '+', is the host's: which of the
// plugin's devices are used; all where it is not given. A candidate that is refused does not end the search.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/host/plugin.h"

namespace ltc::host {

inline constexpr const char* kDefaultBackend = "torchscript";

// An entry of LTC_BACKEND.
struct BackendEntry {
  std::string plugin;             // name or path
  Options options = {};           // of the plugin
  std::vector<uint32_t> devices;  // of the plugin's, to be used in this order; empty: all
};

// The plugin's options with those that the environment has for it and the entry does not.
Options with_environment(Options options, const std::string& path);

// Throws INVALID_ARGUMENT for an option without '=' and one that comes twice.
BackendEntry parse_entry(std::string_view text);
// The entries of LTC_BACKEND, trimmed, empty ones dropped; the default where none is left.
std::vector<BackendEntry> parse_backends(std::string_view list);

// Whether the process has more rights than its user (set-uid and the like). Such a process loads nothing that the user's
// environment points to.
bool running_elevated();

// The folders to search, in order, from the environment; `own` is the last. LTC_PLUGIN_PATH is ignored in an elevated process.
std::vector<std::string> plugin_folders(bool elevated = running_elevated());
std::vector<std::string> plugin_folders(const std::string& own, bool elevated);

// A plugin instance for one entry. It has at least one device.
// Throws NOT_FOUND that lists every file tried with why it was refused, and the names that `folders` offer.
std::shared_ptr<Plugin> find_plugin(const BackendEntry& entry, const std::vector<std::string>& folders,
                                    bool elevated = running_elevated());

// The names that `folders` offer, sorted; their files are not opened.
std::vector<std::string> available_backends(const std::vector<std::string>& folders);

// The files of plugins in `folders`, by folder and name; they are not opened.
std::vector<std::string> plugin_files(const std::vector<std::string>& folders);

}  // namespace ltc::host
