#include "core/base/utf8.h"

#include <algorithm>
#include <cstdio>

namespace ltc {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Bytes of the character that `bytes` begins with; 0 if it begins with none (Unicode 15, table 3-7).
size_t character_size(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x80) return 1;
  const size_t size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (size == 0 || bytes.size() < size) return 0;
  if (!std::all_of(bytes.begin() + 1, bytes.begin() + static_cast<std::ptrdiff_t>(size), is_continuation)) return 0;
  const auto second = static_cast<unsigned char>(bytes[1]);
  const bool too_long = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0, too_large = first == 0xF4 && second >= 0x90;
  return too_long || surrogate || too_large ? 0 : size;
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t size = character_size(bytes);
    text += size ? bytes.substr(0, size) : kReplacement;
    bytes.remove_prefix(std::max<size_t>(size, 1));
  }
  return text;
}

std::string message_text(std::string_view bytes) {
  if (bytes.size() <= kLongestMessage) return valid_utf8(bytes);
  size_t kept = kLongestMessage;
  for (int i = 0; i < 3 && is_continuation(bytes[kept]); ++i) --kept;  // no half of a character
  return valid_utf8(bytes.substr(0, kept)) + "... (" + std::to_string(bytes.size() - kept) + " more bytes)";
}

std::string json_string(std::string_view bytes) {
  std::string result = "\"";
  for (const char c : valid_utf8(bytes)) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      result += code;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace ltc
