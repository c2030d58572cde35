// Every environment variable of this project, in one place; the README's table says the same.
//
// A value that is not legal is an error wherever it is read, and for all of the host's variables when the device is registered.
// Variables of a plugin `my-chip` begin with LTC_MY_CHIP_; what follows, in lower case, is the name of one of its options.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/api.h"

namespace ltc::env {

// A variable of the host.
struct Variable {
  const char* name;
  const char* standard;    // the value where it is unset or empty
  const char* legal = "";  // the values, separated by '|'; SECONDS is a number, and one follows in place of SEED; "": any text
};

inline constexpr const char* kFlag = "0|1";

inline constexpr Variable kBackend{"LTC_BACKEND", ""};         // name, path, or list of them separated by ';'
inline constexpr Variable kPluginPath{"LTC_PLUGIN_PATH", ""};  // folders to search for plugins, separated by ':'
inline constexpr Variable kLog{"LTC_LOG", "warn", "trace|debug|info|warn|error|off"};  // in the order of log::Level
inline constexpr Variable kFallback{"LTC_FALLBACK", "allow", "allow|warn|error"};
inline constexpr Variable kClaims{"LTC_CLAIMS", "all", "all|minimal|random:SEED"};   // of what the plugin claims
inline constexpr Variable kEffort{"LTC_EFFORT", "auto", "auto|0|1|2|3"};             // that compiling takes
inline constexpr Variable kBackgroundCompile{"LTC_BACKGROUND_COMPILE", "0", kFlag};  // 1: the host computes steps meanwhile
inline constexpr Variable kCacheDir{"LTC_CACHE_DIR", ""};                            // folder of the programs kept on disk
inline constexpr Variable kCacheShared{"LTC_CACHE_SHARED", ""};                      // folders that are only read, by ':'
inline constexpr Variable kCache{"LTC_CACHE", "1", kFlag};                           // 0: no programs are kept on disk
inline constexpr Variable kUseBf16{"LTC_USE_BF16", "0", kFlag};                      // 1: float and double are computed as bf16
inline constexpr Variable kAutoStep{"LTC_AUTO_STEP", "1", kFlag};                    // 0: no step ends by itself
inline constexpr Variable kEager{"LTC_EAGER", "0", kFlag};                           // 1: every op runs at once
inline constexpr Variable kPatches{"LTC_PATCHES", "all"};                            // read by the Python package
inline constexpr Variable kStacks{"LTC_STACKS", "0", kFlag};                         // 1: messages show whole Python stacks
inline constexpr Variable kVerify{"LTC_VERIFY", "0", kFlag};                         // 1: graphs are checked while compiling
inline constexpr Variable kCheck{"LTC_CHECK", "0", "0|1|nan"};                       // runs beside the CPU's (result_check.h)
inline constexpr Variable kValidate{"LTC_VALIDATE", "0", "0|1|abort"};               // check the calls of plugins
inline constexpr Variable kWatchdog{"LTC_WATCHDOG", "30", "0|SECONDS"};              // 0: no call of a plugin is watched

inline constexpr Variable kVariables[] = {kBackend,  kPluginPath, kLog,     kFallback, kClaims,     kCacheDir, kCache,
                                          kUseBf16,  kEager,      kPatches, kStacks,   kVerify,     kEffort,   kBackgroundCompile,
                                          kValidate, kWatchdog,   kCheck,   kAutoStep, kCacheShared};

// The variable's value. Throws Error(kInvalidArgument) that names the variable, the value and the legal ones.
LTC_API std::string get(const Variable& variable);
LTC_API bool is_set(const Variable& flag);   // whether it is 1
LTC_API size_t choice(const Variable& one);  // which of the legal values it is, from 0

// Throws what the first variable of the host with an illegal value makes get() throw.
LTC_API void check();

// The options that the environment has for a plugin, by name; none in a process with more rights than its user.
std::vector<std::pair<std::string, std::string>> options_of(std::string_view plugin);

// The variables LTC_* of the environment with their values, sorted.
std::vector<std::pair<std::string, std::string>> set_variables();

// Warnings about variables LTC_* that nobody reads, each with the nearest name that is read. `names`: of the environment.
std::vector<std::string> strangers(std::span<const std::string> names, std::span<const std::string> plugins);
void warn_of_strangers(std::span<const std::string> plugins);  // in the log, once in a process

// A variable that is not this project's; empty where it is unset.
std::string of_system(const char* name);

// Whether the process has more rights than its user (set-uid and the like): paths from the environment are not the owner's then.
bool is_elevated();

}  // namespace ltc::env
