#include "core/run/queue/adaptive_spin.h"

#include <gtest/gtest.h>

namespace ltc {
namespace {

// Pieces of work that each come `gap` ns after the one before was done.
struct Work {
  void come(int times, uint64_t gap) {
    for (; times > 0; --times) {
      spin_policy.note_arrival(now += gap);
      spin_policy.note_idle(now += 10'000);
    }
  }

  SpinPolicy spin_policy;
  uint64_t now = 1'000'000'000;
};

TEST(SpinPolicyTest, SpinsWhileWorkFollowsWork) {
  Work work;
  EXPECT_FALSE(work.spin_policy.should_spin());
  work.come(1, 500'000);
  EXPECT_FALSE(work.spin_policy.should_spin());
  work.come(1, SpinPolicy::kLongestGap);
  EXPECT_TRUE(work.spin_policy.should_spin());
  work.come(1, SpinPolicy::kLongestGap + 1);
  EXPECT_FALSE(work.spin_policy.should_spin());
  work.come(1, 0);
  EXPECT_TRUE(work.spin_policy.should_spin());
}

TEST(SpinPolicyTest, APreemptionNowAndThenIsTolerated) {
  Work work;
  for (int i = 0; i < 100; ++i) {
    work.come(60, 1'000);
    EXPECT_TRUE(work.spin_policy.should_spin());
    work.spin_policy.note_preempted();
  }
}

TEST(SpinPolicyTest, WhereTheProcessorIsWantedItIsSeldomKept) {
  Work work;
  int kept = 0;
  for (int i = 0; i < 10'000; ++i) {
    work.come(1, 1'000);
    if (!work.spin_policy.should_spin()) continue;
    ++kept;
    work.spin_policy.note_preempted();
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, 300);
}

TEST(SpinUntilTest, EndsWhenItIsDoneOrTimeIsUp) {
  int asked = 0;
  const auto at_the_third = [&] { return ++asked == 3; };
  while (spin_until(UINT64_MAX, at_the_third)) asked = 0;  // another thread took the processor
  EXPECT_EQ(asked, 3);
  spin_until(1'000, [] { return false; });
}

}  // namespace
}  // namespace ltc
