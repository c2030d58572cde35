#include "core/base/error.h"

#include "core/base/utf8.h"

namespace ltc {

Error::Error(Code code, const std::string& message) : std::runtime_error(message_text(message)), code_(code) {}

const char* code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "INVALID_ARGUMENT";
    case Code::kNotFound: return "NOT_FOUND";
    case Code::kUnsupported: return "UNSUPPORTED";
    case Code::kResourceExhausted: return "RESOURCE_EXHAUSTED";
    case Code::kDeviceLost: return "DEVICE_LOST";
    case Code::kCancelled: return "CANCELLED";
    case Code::kTimeout: return "TIMEOUT";
    case Code::kDataCorrupt: return "DATA_CORRUPT";
    case Code::kInternal: return "INTERNAL";
    case Code::kOutOfRange: return "OUT_OF_RANGE";
  }
  return "INTERNAL";  // an unknown code of a newer plugin reads as INTERNAL
}

}  // namespace ltc
