// The log, written to stderr by spdlog. Level from LTC_LOG: trace, debug, info, warn (default), error, off.
// Any thread. A disabled line costs one comparison; its text is not built.
#pragma once

#include <string_view>

#include "core/base/api.h"
#include "core/base/error.h"

namespace ltc::log {

enum class Level : int { kTrace, kDebug, kInfo, kWarn, kError, kOff };

LTC_API bool enabled(Level level);
LTC_API void write(Level level, std::string_view message);

template <typename... Parts>
void at(Level level, const Parts&... parts) {
  if (enabled(level)) write(level, cat(parts...));
}
template <typename... Parts>
void debug(const Parts&... parts) {
  at(Level::kDebug, parts...);
}
template <typename... Parts>
void info(const Parts&... parts) {
  at(Level::kInfo, parts...);
}
template <typename... Parts>
void warn(const Parts&... parts) {
  at(Level::kWarn, parts...);
}
template <typename... Parts>
void error(const Parts&... parts) {
  at(Level::kError, parts...);
}

}  // namespace ltc::log
