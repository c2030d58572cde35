#include "core/report/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace ltc::metrics {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class MetricsTest : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
};

TEST_F(MetricsTest, CountsByName) {
  counter("b") += 2;
  counter("a") += 1;
  counter("c");
  EXPECT_THAT(counter_names(), ElementsAre("a", "b"));
  EXPECT_EQ(counter_value("b"), 2);
  EXPECT_EQ(counter_value("c"), 0);
  EXPECT_EQ(counter_value("never heard of"), 0);
}

TEST_F(MetricsTest, ACounterLivesForEver) {
  Counter& kept = counter("kept");
  for (int i = 0; i < 1000; ++i) counter("another " + std::to_string(i)) += 1;
  EXPECT_EQ(&counter("kept"), &kept);
  reset();
  EXPECT_THAT(counter_names(), IsEmpty());
  kept += 3;
  EXPECT_EQ(counter_value("kept"), 3);
}

TEST_F(MetricsTest, ReportsWhatIsNotZero) {
  EXPECT_EQ(report(), "no counter is set\n");
  counter(kMarkStep) += 7;
  counter("quiet");
  EXPECT_THAT(report(), AllOf(HasSubstr("MarkStep"), HasSubstr("7"), Not(HasSubstr("quiet"))));
}

TEST_F(MetricsTest, ThreadsCountTogether) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) counter("shared") += 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter_value("shared"), 4000);
}

}  // namespace
}  // namespace ltc::metrics
