#include "device/sources.h"

#include <regex>

namespace ltc::device {
namespace {

std::string line_of(const std::string& source, size_t number) {
  size_t begin = 0;
  for (size_t line = 1; line < number && begin != std::string::npos; ++line) begin = source.find('\n', begin) + 1;
  return source.substr(begin, source.find('\n', begin) - begin);
}

}  // namespace

std::string quoted_lines(const std::string& log, const std::string& source, const char* place) {
  const std::regex pattern(place);
  std::string lines;
  for (std::sregex_iterator it(log.begin(), log.end(), pattern), end; it != end; ++it) {
    const std::string number = (*it)[1];
    lines += "\nline " + number + ": " + line_of(source, std::stoul(number));
  }
  return lines;
}

}  // namespace ltc::device
