// Numbers in texts.
#pragma once

#include <charconv>
#include <string_view>

namespace ltc {

// Whether all of the text is a number of that type. If not, `value` may be anything.
template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace ltc
