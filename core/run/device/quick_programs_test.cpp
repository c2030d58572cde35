// Programs that come and do not come again: a device that compiles quickly runs them without optimizing them.
#include <algorithm>

#include "core/report/misses.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::Each;
using ::testing::SizeIs;

class QuickProgramsTest : public LocatedTest {
 protected:
  void open(bool compiles_quickly = true) {
    watch.compiles_quickly = compiles_quickly;
    LazyTest::open("watched");
  }

  void step(int64_t n) { EXPECT_THAT(step_of_size(n), Each(3.f)); }
  void steps_of_new_sizes(int64_t count) {
    while (count-- > 0) step(next_size_++);
  }

  static int64_t last_size() { return next_size_ - 1; }

  static int64_t quick() { return metrics::counter_value(metrics::kQuickCompile); }

 private:
  static inline int64_t next_size_ = 1;  // never the same twice: traces of other tests are compared too
};

TEST_F(QuickProgramsTest, NewSizesAreCompiledUntilTheyWereSeenToGoOn) {
  open();
  steps_of_new_sizes(1);  // may resemble a step of another test
  watch.efforts.clear();
  metrics::reset();
  steps_of_new_sizes(25);
  EXPECT_EQ(compiled(), kRepeatedMisses);
  EXPECT_EQ(quick(), 25 - kRepeatedMisses);
  EXPECT_EQ(std::ranges::count(watch.efforts, 0u), quick());
  ASSERT_THAT(misses(), SizeIs(1));
  EXPECT_EQ(misses()[0].count, compiled());
}

TEST_F(QuickProgramsTest, OneThatRepeatsIsOptimizedOnce) {
  open();
  steps_of_new_sizes(10);
  const int64_t was_compiled = compiled(), was_quick = quick();
  EXPECT_GE(was_quick, 4);
  for (int i = 0; i < 7; ++i) step(last_size());
  EXPECT_EQ(compiled(), was_compiled);
  for (int i = 0; i < 20; ++i) step(last_size());
  EXPECT_EQ(compiled(), was_compiled + 1);
  EXPECT_EQ(quick(), was_quick);
  EXPECT_EQ(watch.efforts.back(), 1u);
}

TEST_F(QuickProgramsTest, LargeOnesAreOptimizedAtOnce) {
  open();
  for (int64_t n = 1; n <= 12; ++n) step((1 << 16) + n);
  EXPECT_EQ(compiled(), 12);
  EXPECT_EQ(quick(), 0);
}

TEST_F(QuickProgramsTest, OtherDevicesOptimizeEachSize) {
  open(/*compiles_quickly=*/false);
  steps_of_new_sizes(12);
  EXPECT_EQ(compiled(), 12);
  EXPECT_EQ(quick(), 0);
}

}  // namespace
}  // namespace ltc
