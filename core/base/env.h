// Every environment variable that the host reads, in one place; the README's table says the same.
#pragma once

#include <string>

#include "core/base/api.h"

namespace ltc::env {

inline constexpr const char* kBackend = "LTC_BACKEND";         // name, path, or list of them separated by ';'  [torchscript]
inline constexpr const char* kPluginPath = "LTC_PLUGIN_PATH";  // folders to search for plugins, separated by ':'
inline constexpr const char* kLog = "LTC_LOG";                 // trace | debug | info | warn | error | off      [warn]
inline constexpr const char* kFallback = "LTC_FALLBACK";       // allow | warn | error                           [allow]
inline constexpr const char* kClaims = "LTC_CLAIMS";           // all | minimal | half:SEED: of what the plugin claims [all]
inline constexpr const char* kCacheDir = "LTC_CACHE_DIR";      // folder of the programs kept on disk   [the user's, for caches]
inline constexpr const char* kCache = "LTC_CACHE";             // 0: no programs are kept on disk                  [1]
inline constexpr const char* kUseBf16 = "LTC_USE_BF16";        // 1: float and double are computed as bf16         [0]
inline constexpr const char* kEager = "LTC_EAGER";             // 1: every op runs at once                       [0]
inline constexpr const char* kFastOperators = "LTC_FAST_OPERATORS";  // 1: + - * / skip PyTorch's dispatcher     [0]
inline constexpr const char* kStacks = "LTC_STACKS";                 // 1: messages show whole Python stacks           [0]
inline constexpr const char* kVerify = "LTC_VERIFY";                 // 1: graphs are checked while compiling            [0]

// Whether a variable that is 0 or 1 is set to anything but 0.
LTC_API bool is_set(const char* name);

// The variable's value, or `fallback` where it is unset or empty.
LTC_API std::string get(const char* name, const std::string& fallback = "");

}  // namespace ltc::env
