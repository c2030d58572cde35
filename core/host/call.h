// Calls into a plugin: every way out of a slot gets the same shape.
#pragma once

#include <cstring>
#include <exception>
#include <string>

#include "core/base/float_control.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "core/host/plugin.h"
#include "core/host/watchdog.h"

namespace ltc::host {

// Runs `call`, a lambda that calls `slot`, and lets no exception through that the plugin did not have the right to throw.
// `plugin`: a name that stays for the life of the process (HostApi::plugin_name).
template <typename Call>
LTC_ALWAYS_INLINE auto guarded(const std::string& plugin, const char* slot, Call&& call) {
  const WatchedCall watched(plugin, slot);
  try {
    return call();
  } catch (const std::exception& e) {
    throw BrokenContract(plugin, cat("the plugin threw from ", slot, ": ", e.what()));
  } catch (...) {
    throw BrokenContract(plugin, cat("the plugin threw from ", slot, ": not a std::exception"));
  }
}

// The same for a slot that returns a status: null or an ltc::Error. The slot may run on a thread of the user's, whose own numbers
// must not be computed differently afterwards.
template <typename Keep, typename Call>
LTC_ALWAYS_INLINE void checked(const std::string& plugin, const char* slot, Call&& call) {
  [[maybe_unused]] const Keep keep;
  if (ltc_status* status = guarded(plugin, slot, call)) throw_status(plugin, slot, status);
}

// The same for a slot that cannot fail: there is nobody to tell, so the log is told.
template <typename Call>
LTC_ALWAYS_INLINE void ended(const std::string& plugin, const char* slot, Call&& call) noexcept {
  try {
    guarded(plugin, slot, call);
  } catch (const std::exception& e) {
    log::error(e.what());
  }
}

// A descriptor's string. One that claims to be longer than this ends with its NUL, and after so many bytes.
inline constexpr size_t kLongestText = 4096;
inline std::string copied(ltc_string text) {
  if (!text.data) return {};
  return valid_utf8({text.data, text.size <= kLongestText ? text.size : ::strnlen(text.data, kLongestText)});
}

template <typename Keep, typename Call>
LTC_ALWAYS_INLINE void Plugin::ask(const char* slot, Call&& call) const {
  const auto turn = take_turn();
  checked<Keep>(name_, slot, call);
}

template <typename Call>
LTC_ALWAYS_INLINE void Plugin::tell(const char* slot, Call&& call) const noexcept {
  const auto turn = take_turn();
  ended(name_, slot, call);
}

}  // namespace ltc::host
