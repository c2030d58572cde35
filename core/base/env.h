// Every environment variable that the host reads, in one place; the README's table says the same.
#pragma once

#include <string>

namespace ltc::env {

inline constexpr const char* kBackend = "LTC_BACKEND";         // name, path, or list of them separated by ';'  [torchscript]
inline constexpr const char* kPluginPath = "LTC_PLUGIN_PATH";  // folders to search for plugins, separated by ':'
inline constexpr const char* kLog = "LTC_LOG";                 // trace | debug | info | warn | error | off      [warn]
inline constexpr const char* kFallback = "LTC_FALLBACK";       // allow | warn | error                           [allow]
inline constexpr const char* kUseBf16 = "LTC_USE_BF16";        // 1: float and double are computed as bf16         [0]

// The variable's value, or `fallback` where it is unset or empty.
std::string get(const char* name, const std::string& fallback = "");

}  // namespace ltc::env
