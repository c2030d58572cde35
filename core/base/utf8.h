// Text for people from bytes of unknown origin: a plugin's message, a variable's value, a path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ltc {

// No message is longer than this many bytes.
inline constexpr size_t kLongestMessage = 64 << 10;

// The bytes as UTF-8: each byte that belongs to no character becomes U+FFFD.
std::string valid_utf8(std::string_view bytes);

// The same of at most the first kLongestMessage bytes; says how many were left out.
std::string message_text(std::string_view bytes);

// The bytes as a string of JSON, with its quotation marks.
std::string json_string(std::string_view bytes);

}  // namespace ltc
