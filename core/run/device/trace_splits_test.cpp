#include "core/run/device/trace_splits.h"

#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::Each;
using ::testing::ElementsAre;

constexpr int kEqualOps = 80;

class TraceSplitsTest : public LocatedTest {
 protected:
  // Ops on `model`, which is the same size in each step, between ops on what has the size n.
  void step(LazyStorage& model, int64_t n) {
    LazyStorage grown(device()), before(device()), after(device());
    fill(grown, Floats(static_cast<size_t>(n), 2.f));
    record(before, "aten::add.Tensor", {&grown, &grown});
    for (int i = 0; i < kEqualOps; ++i) record_and_end(model, "aten::neg", {&model});
    record_and_end(after, "aten::add.Tensor", {&grown, &grown});
    sync();
    EXPECT_THAT(read(before), Each(4.f));
    EXPECT_THAT(read(after), Each(4.f));
  }

  // As the front end does.
  void record_and_end(LazyStorage& result, const char* op, std::vector<LazyStorage*> inputs) {
    device().before_op(intern_op(op));
    record(result, op, inputs);
  }

  static int64_t splits() { return metrics::counter_value(metrics::kTraceSplit); }
};

TEST_F(TraceSplitsTest, WhatIsEqualInEachStepIsCompiledOnce) {
  open("watched");
  LazyStorage model(device());
  fill(model, {1, -3});
  int64_t n = 1;
  for (; n <= 12; ++n) step(model, n);
  const int64_t compiled_before = compiled(), found_before = found(), splits_before = splits();
  for (; n <= 22; ++n) step(model, n);
  EXPECT_EQ(splits() - splits_before, 20);          // before and after the equal part
  EXPECT_EQ(found() - found_before, 10);            // the equal part
  EXPECT_EQ(compiled() - compiled_before, 2 * 10);  // an op on either side
  EXPECT_THAT(read(model), ElementsAre(1, -3));
}

TEST_F(TraceSplitsTest, StepsOfManySizesThatRepeatAreFound) {
  open("watched");
  LazyStorage model(device());
  fill(model, {1, -3});
  for (int64_t n = 1; n <= 12; ++n) step(model, n);
  for (int64_t n = 1; n <= 12; ++n) step(model, n);  // the first ones were not split the first time
  const int64_t before = compiled();
  for (int64_t n = 1; n <= 12; ++n) step(model, n);
  EXPECT_EQ(compiled(), before);
}

TEST_F(TraceSplitsTest, AStepThatDiffersEverywhereIsNotSplit) {
  open("watched");
  for (int64_t n = 1; n <= 10; ++n) {
    LazyStorage x(device());
    fill(x, Floats(static_cast<size_t>(n), 1.f));
    for (int i = 0; i < kEqualOps; ++i) record_and_end(x, "aten::neg", {&x});
    sync();
    EXPECT_THAT(read(x), Each(1.f));
  }
  EXPECT_EQ(splits(), 0);
  EXPECT_EQ(compiled(), 10);
}

TEST(TraceSplits, ShortAndSmallPartsAreLeft) {
  TraceSplits splits;
  Trace trace;
  for (ValueId i = 0; i < 300; ++i) trace.add_param(kOpParam, kNoType);
  splits.learn(trace, {}, {10, 60});
  splits.learn(trace, {}, {100, 200});
  for (int variant = 0; variant < 3; ++variant) {
    EXPECT_EQ(splits.next(0), SIZE_MAX);
    splits.learn(trace, {}, {100, 260});
  }
  EXPECT_EQ(splits.next(0), 100u);
  EXPECT_EQ(splits.next(100), SIZE_MAX);
  Trace other = trace;
  other.records[40].op = kOpScalar;
  EXPECT_FALSE(splits.end_here(other, {}, 100));
  EXPECT_TRUE(splits.end_here(trace, {}, 100));
  splits.note_end();
  EXPECT_FALSE(splits.end_here(trace, {}, 100));  // not twice in a row
  splits.note_end();
  EXPECT_TRUE(splits.end_here(trace, {}, 100));
}

}  // namespace
}  // namespace ltc
