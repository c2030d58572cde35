// The SDK's archive. Input: a flag; then the saved bytes, or with the flag the fields, for which the head is made.
#include "ltc/archive.hpp"

#include "fuzz/sealed.h"

namespace ltc::fuzz {
namespace {

enum class Colour : uint8_t { kRed, kGreen };

struct Part {
  int32_t number = 0;
  std::vector<std::string> names;
};
[[maybe_unused]] void archive(plugin::Archive& io, Part& part) { io(part.number, part.names); }

struct Whole {
  bool flag = false;
  int8_t small = 0;
  uint64_t large = 0;
  Colour colour = Colour::kRed;
  std::string text;
  std::vector<bool> flags;
  std::vector<Part> parts;
};
[[maybe_unused]] void archive(plugin::Archive& io, Whole& whole) {
  io(whole.flag, whole.small, whole.large, whole.colour, whole.text, whole.flags, whole.parts);
}

constexpr std::string_view kFormat = "fuzz 1";

}  // namespace

bool accept(std::string_view input) {
  const std::string bytes = take_flag(input) ? sealed(plugin::save(kFormat), input) : std::string(input);
  Whole whole;
  try {
    plugin::load(kFormat, bytes, whole);
  } catch (const plugin::Failure&) {
    return false;
  }
  require(plugin::save(kFormat, whole) == bytes, "what is loaded and saved again has the same bytes");
  return true;
}

std::vector<std::string> sound_inputs() {
  const Whole whole{true, -1, uint64_t{1} << 63, Colour::kGreen, "text", {true, false}, {{-5, {"a", ""}}, {7, {}}}};
  const std::string bytes = plugin::save(kFormat, whole);
  return {'\0' + bytes, '\1' + bytes.substr(kHeadBytes)};
}

}  // namespace ltc::fuzz
