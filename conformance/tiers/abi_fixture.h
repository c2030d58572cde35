// The fixture of the abi tier's files.
#pragma once

#include <string>

#include "conformance/kit/fixture.h"
#include "conformance/kit/guarded_struct.h"
#include "core/host/sized.h"

namespace ltc::conformance {

inline constexpr ltc_extension kUnknown{sizeof(ltc_extension), 0x7fff0001u, 1, nullptr};
// Bit 31 counts in the plugin's list only.
inline constexpr ltc_extension kMarked{sizeof(ltc_extension), LTC_EXTENSION_REQUIRED | 0x7fff0001u, 1, nullptr};

inline std::string text(ltc_string s) { return s.data ? std::string(s.data, s.size) : std::string(); }

// ---- each call with args as a newer host has them: a larger struct, an extension that the plugin does not know

enum class How { kLarger, kUnknownExtension, kMarkedExtension };

template <typename Args>
Guarded<Args> args_for(How how) {
  Guarded<Args> args;
  if (how == How::kLarger) args.grow();
  if (how == How::kUnknownExtension) args->ext = &kUnknown;
  if (how == How::kMarkedExtension) args->ext = &kMarked;
  return args;
}

}  // namespace ltc::conformance
