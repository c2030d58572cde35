#include "core/run/queue/pace.h"

#include <gtest/gtest.h>

namespace ltc {
namespace {

// Pieces of work that each come `gap` ns after the one before was done.
struct Work {
  void come(int times, uint64_t gap) {
    for (; times > 0; --times) {
      pace.note_arrival(now += gap);
      pace.note_dry(now += 10'000);
    }
  }

  Pace pace;
  uint64_t now = 1'000'000'000;
};

TEST(PaceTest, IsQuickWhileWorkFollowsWork) {
  Work work;
  EXPECT_FALSE(work.pace.quick());
  work.come(1, 500'000);
  EXPECT_FALSE(work.pace.quick());
  work.come(1, Pace::kStep);
  EXPECT_TRUE(work.pace.quick());
  work.come(1, Pace::kStep + 1);
  EXPECT_FALSE(work.pace.quick());
  work.come(1, 0);
  EXPECT_TRUE(work.pace.quick());
}

TEST(PaceTest, ADisturbanceNowAndThenIsTolerated) {
  Work work;
  for (int i = 0; i < 100; ++i) {
    work.come(60, 1'000);
    EXPECT_TRUE(work.pace.quick());
    work.pace.note_disturbed();
  }
}

TEST(PaceTest, WhereTheProcessorIsWantedItIsSeldomKept) {
  Work work;
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    work.come(1, 1'000);
    if (!work.pace.quick()) continue;
    ++kept;
    work.pace.note_disturbed();
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 300);
}

TEST(StayAwakeTest, EndsWhenItIsDoneOrTimeIsUp) {
  int asked = 0;
  const auto at_the_third = [&] { return ++asked == 3; };
  while (stay_awake(UINT64_MAX, at_the_third)) asked = 0;  // another thread took the processor
  EXPECT_EQ(asked, 3);
  stay_awake(1'000, [] { return false; });
}

}  // namespace
}  // namespace ltc
