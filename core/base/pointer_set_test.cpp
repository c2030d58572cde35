#include "core/base/pointer_set.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>

namespace ltc {
namespace {

// Few addresses that lie close together, so that searches run into each other.
TEST(PointerSet, does_as_the_standard_set_does) {
  std::mt19937 random(7);
  std::vector<int> memory(300);
  PointerSet<int> set;
  std::unordered_set<int*> expected;
  for (int i = 0; i < 200'000; ++i) {
    int* const pointer = &memory[random() % memory.size()];
    const bool grows = i / 1000 % 2 == 0;
    if (random() % 4 == 0) {
      ASSERT_EQ(set.contains(pointer), expected.contains(pointer));
    } else if (random() % 4 != 0 ? grows : !grows) {
      ASSERT_EQ(set.insert(pointer), expected.insert(pointer).second);
    } else {
      ASSERT_EQ(set.erase(pointer), expected.erase(pointer) > 0);
    }
    ASSERT_EQ(set.size(), expected.size());
  }
  std::unordered_set<int*> seen;
  set.for_each([&](int* pointer) { EXPECT_TRUE(seen.insert(pointer).second); });
  EXPECT_EQ(seen, expected);
  set.clear();
  EXPECT_EQ(set.size(), 0u);
  EXPECT_FALSE(set.contains(&memory[0]));
}

}  // namespace
}  // namespace ltc
