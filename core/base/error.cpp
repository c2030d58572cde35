#include "core/base/error.h"

#include <charconv>
#include <cstdio>

#include "core/base/utf8.h"

namespace ltc {

Error::Error(Code code, const std::string& message) : std::runtime_error(message_text(message)), code_(code) {}

void TextPart::append_to(std::string& text) const {
  char digits[32];
  char* const end = digits + sizeof digits;
  switch (kind_) {
    case kText: text.append(text_.data, text_.size); return;
    case kCString:
      if (address_) text += static_cast<const char*>(address_);
      return;
    case kCharacter: text += static_cast<char>(number_); return;
    case kNumber: text.append(digits, std::to_chars(digits, end, number_).ptr); return;
    case kUnsigned: text.append(digits, std::to_chars(digits, end, unsigned_).ptr); return;
    case kFloat: text.append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%g", float_))); return;
    case kAddress: text.append(digits, static_cast<size_t>(std::snprintf(digits, sizeof digits, "%p", address_))); return;
  }
}

std::string join(std::initializer_list<TextPart> parts) {
  std::string text;
  for (const TextPart& part : parts) part.append_to(text);
  return text;
}

void fail_with(Code code, std::initializer_list<TextPart> parts) { throw Error(code, join(parts)); }

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
