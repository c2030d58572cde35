#include "core/base/bytes.h"

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

}  // namespace ltc
