#include "core/base/bytes.h"

#include <cstdio>
#include <iterator>

#include "core/base/error.h"

namespace ltc {

std::string_view ByteReader::take(size_t size) {
  if (size > rest_.size()) fail(Code::kDataCorrupt, "saved bytes are damaged: they end too early");
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

size_t ByteReader::length(size_t least) {
  const auto count = number<uint64_t>();
  if (count > rest_.size() / least) fail(Code::kDataCorrupt, "saved bytes are damaged: a length");
  return count;
}

std::string size_text(int64_t bytes) {
  static const char* const units[] = {"bytes", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(units); ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

}  // namespace ltc
