#include "core/base/intern.h"

#include <gtest/gtest.h>

namespace ltc {
namespace {

struct Same {
  uint64_t operator()(uint32_t number) const { return number * 0x9e3779b97f4a7c15; }
};

TEST(InternTable, EqualValuesHaveEqualIds) {
  InternTable<uint32_t, Same, 2> table("numbers");
  const auto id = table.intern(7u);
  EXPECT_EQ(table.intern(7u), id);
  EXPECT_NE(table.intern(8u), id);
  EXPECT_EQ(table[id], 7u);
}

TEST(InternTable, AFullOneSaysOfWhatAndKeepsWhatItHas) {
  InternTable<uint32_t, Same, 2> table("numbers");
  for (uint32_t i = 0; i < 512; ++i) EXPECT_EQ(table.intern(i), i);
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      table.intern(512u);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kResourceExhausted);
      EXPECT_STREQ(error.what(), "this process has met 512 different numbers, and can hold no more; a new process can");
    }
  }
  for (uint32_t i = 0; i < 512; ++i) EXPECT_EQ(table.intern(i), i);
}

}  // namespace
}  // namespace ltc
