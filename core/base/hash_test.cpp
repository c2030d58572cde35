#include "core/base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ltc {
namespace {

// The lengths are those around which the loops change.
TEST(HashBytes, depends_on_each_byte_and_on_the_length) {
  std::set<uint64_t> seen;
  size_t expected = 0;
  const auto add = [&](const std::string& text) {
    seen.insert(hash_bytes(0, text.data(), text.size()));
    ++expected;
  };
  for (size_t length = 0; length <= 140; ++length) {
    std::string text(length, 'a');
    add(text);
    for (char& letter : text) {
      letter = 'b';
      add(text);
      letter = 'a';
    }
  }
  EXPECT_EQ(seen.size(), expected);
}

TEST(HashBytes, depends_on_the_seed) {
  for (size_t length = 0; length <= 140; ++length) {
    const std::string text(length, 'a');
    std::set<uint64_t> seen;
    for (const uint64_t seed : {0, 1, 2, 3}) seen.insert(hash_bytes(seed, text.data(), length));
    EXPECT_EQ(seen.size(), 4u) << length;
  }
}

// Words that have changed their chains are others.
TEST(HashBytes, depends_on_the_order_of_words) {
  const std::string one = std::string(32, 'a') + std::string(32, 'b'), other = std::string(32, 'b') + std::string(32, 'a');
  std::string swapped = one;
  swapped[0] = 'x';
  std::string moved = one;
  moved[8] = 'x';
  const std::set<uint64_t> seen = {hash_bytes(0, one.data(), 64), hash_bytes(0, other.data(), 64),
                                   hash_bytes(0, swapped.data(), 64), hash_bytes(0, moved.data(), 64)};
  EXPECT_EQ(seen.size(), 4u);
}

}  // namespace
}  // namespace ltc
