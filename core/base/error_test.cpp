#include "core/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace ltc {
namespace {

TEST(Cat, JoinsValuesOfAnyKind) {
  const std::string text = "text";
  const char* const none = nullptr;
  EXPECT_EQ(cat(text, ", ", std::string_view(text).substr(0, 2), 'c', none), "text, tec");
  EXPECT_EQ(cat(INT64_MIN, " ", UINT64_MAX, " ", int8_t{-1}, " ", uint16_t{7}), "-9223372036854775808 18446744073709551615 -1 7");
  EXPECT_EQ(cat(true, false, " ", 0.5, " ", 1.0f / 3, " ", 1e300), "10 0.5 0.333333 1e+300");
  EXPECT_EQ(cat(static_cast<const void*>(&text)).substr(0, 2), "0x");
  EXPECT_EQ(cat(), "");
}

TEST(Fail, ThrowsTheJoinedText) {
  try {
    fail(Code::kNotFound, "there are ", 3, " of ", 4u);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kNotFound);
    EXPECT_STREQ(error.what(), "there are 3 of 4");
    return;
  }
  FAIL();
}

}  // namespace
}  // namespace ltc
