// The message of an exception, for the log.
#pragma once

#include <c10/util/Exception.h>

namespace ltc {

// c10::Error::what() looks up the symbols of a backtrace, which takes longer than compiling a small program.
inline const char* why(const std::exception& error) {
  const auto* own = dynamic_cast<const c10::Error*>(&error);
  return own ? own->what_without_backtrace() : error.what();
}

}  // namespace ltc
