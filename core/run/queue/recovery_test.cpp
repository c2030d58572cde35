// A step that fails: what it loses, and what its storages hold afterwards. The host of these tests has no value for aten::cos.
#include "core/run/queue/recovery.h"

#include "core/run/device/capture.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kNoCos = "cos has no value here";

class RecoveryTest : public LazyTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { open(GetParam()); }
  void share(LazyStorage& to, LazyStorage& from) {
    Recorder recorder(device());
    recorder.share(to, from, recorder.type(from));
  }
  static int64_t recovered() { return metrics::counter_value(metrics::kRecoveries); }
};
INSTANTIATE_TEST_SUITE_P(Plugins, RecoveryTest, ::testing::Values("test", "test_async", "test_slow"),
                         [](const auto& info) { return info.param; });

TEST_P(RecoveryTest, OnlyWhatDependsOnTheFailedOpIsLost) {
  LazyStorage x(device()), bad(device()), after(device()), other(device());
  fill(x, {1, 2});
  record(bad, "aten::cos", {&x});
  record(after, "aten::neg", {&bad});
  record(other, "aten::neg", {&x});
  sync_and_wait();
  EXPECT_THAT(read(other), ElementsAre(-1, -2));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(read_error(bad), kNoCos);
    EXPECT_EQ(read_error(after), kNoCos);
  }
  EXPECT_THAT(read(x), ElementsAre(1, 2));
  EXPECT_EQ(recovered(), 1);
}

TEST_P(RecoveryTest, TheFailedOpMayHaveLeftItsFirstResultUndefined) {
  LazyStorage x(device()), bad(device());
  fill(x, {1, 2});
  {
    Recorder recorder(device());
    const ValueId inputs[] = {recorder.read(x)};
    const ValueId node = recorder.node(intern_op("aten::cos"), kNoType, kNoAttrs, inputs);
    recorder.bind(bad, recorder.result(node, 1, recorder.type(x)), recorder.type(x));
  }
  sync_and_wait();
  EXPECT_NE(read_error(bad), "");
  EXPECT_THAT(read(x), ElementsAre(1, 2));
}

TEST_P(RecoveryTest, AStorageKeepsItsLastValueBeforeTheFailedOp) {
  LazyStorage x(device()), bad(device());
  fill(x, {1, 2});
  scale(x, 2);
  record(bad, "aten::cos", {&x});
  record(x, "aten::add.Tensor", {&x, &bad});
  scale(x, 3);
  sync_and_wait();
  EXPECT_EQ(read_error(bad), kNoCos);
  EXPECT_THAT(read(x), ElementsAre(2, 4));
  scale(x, 10);
  EXPECT_THAT(read(x), ElementsAre(20, 40));
}

TEST_P(RecoveryTest, WhatIsRecordedAfterTheFailedOpDoesNotCountWhereTheStorageDependsOnIt) {
  LazyStorage x(device()), other(device()), bad(device());
  fill(x, {1, 2});
  fill(other, {1, 2});
  record(bad, "aten::cos", {&x});
  scale(x, 2);
  scale(other, 2);
  record(x, "aten::add.Tensor", {&x, &bad});
  sync_and_wait();
  EXPECT_EQ(read_error(bad), kNoCos);
  EXPECT_THAT(read(x), ElementsAre(1, 2));
  EXPECT_THAT(read(other), ElementsAre(2, 4));
}

TEST_P(RecoveryTest, AStorageOfBeforeTheStepKeepsItsBuffer) {
  LazyStorage x(device()), other(device());
  fill(x, {1, 2});
  fill(other, {5, 6});
  device().wait();
  for (int i = 0; i < 2; ++i) {
    LazyStorage bad(device());
    record(bad, "aten::cos", {&other});
    record(x, "aten::add.Tensor", {&x, &bad});
    sync_and_wait();
    EXPECT_EQ(read_error(bad), kNoCos);
  }
  EXPECT_THAT(read(x), ElementsAre(1, 2));
}

TEST_P(RecoveryTest, AStorageThatWasOverwrittenUnreadGetsItsBufferBack) {
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  fill(y, {3, 4});
  record(x, "aten::cos", {&y});
  sync_and_wait();
  EXPECT_EQ(read_error(x), kNoCos);
  EXPECT_THAT(read(x), ElementsAre(1, 2));
}

TEST_P(RecoveryTest, AValueOfTheSameStepIsKeptToo) {
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  record(y, "aten::neg", {&x});
  record(y, "aten::cos", {&y});
  EXPECT_EQ(read_error(y), kNoCos);
  EXPECT_THAT(read(y), ElementsAre(-1, -2));
}

TEST_P(RecoveryTest, WhoeverReadsFirstIsToldAndNobodyAfterwards) {
  LazyStorage x(device()), bad(device()), later(device());
  fill(x, {1, 2});
  record(bad, "aten::cos", {&x});
  record(x, "aten::add.Tensor", {&x, &bad});
  sync();
  record(later, "aten::neg", {&x});
  EXPECT_EQ(read_error(later), kNoCos);
  EXPECT_THAT(read(later), ElementsAre(-1, -2));
  EXPECT_THAT(read(x), ElementsAre(1, 2));
  EXPECT_EQ(read_error(bad), kNoCos);
}

TEST_P(RecoveryTest, StoragesThatShareTheLostValueKeepTheirOwn) {
  LazyStorage x(device()), target(device()), bad(device());
  fill(x, {1, 2});
  fill(target, {7, 8});
  record(bad, "aten::cos", {&x});
  scale(target, 1);
  record(x, "aten::add.Tensor", {&x, &bad});
  share(target, x);
  sync_and_wait();
  EXPECT_EQ(read_error(bad), kNoCos);
  EXPECT_THAT(read(x), ElementsAre(1, 2));
  EXPECT_THAT(read(target), ElementsAre(7, 8));
}

TEST_P(RecoveryTest, StoragesThatShareAValueMayBothHaveBeenWritten) {
  LazyStorage x(device()), target(device());
  fill(x, {1, 2});
  fill(target, {7, 8});
  scale(target, 2);
  scale(x, 3);
  share(target, x);
  scale(x, 1);
  share(x, target);
  sync_and_wait();
  EXPECT_THAT(read(x), ElementsAre(3, 6));
  EXPECT_THAT(read(target), ElementsAre(3, 6));
  EXPECT_EQ(recovered(), 0);
}

TEST_P(RecoveryTest, ACapturedFunctionLeavesItsArgumentsAsTheyWere) {
  LazyStorage placeholder(device()), result(device()), x(device()), y(device());
  Capture capturing(device());
  capturing.add_argument(placeholder, f32({2}));
  scale(placeholder, 2);
  record(result, "aten::cos", {&placeholder});
  record(placeholder, "aten::add.Tensor", {&placeholder, &result});
  LazyStorage* const results[] = {&result};
  const Captured captured = capturing.finish(results);
  fill(x, {1, 2});
  LazyStorage* const storages[] = {&x, &y};
  device().call(captured, captured.scalars, storages);
  device().wait();
  EXPECT_EQ(read_error(y), kNoCos);
  EXPECT_THAT(read(x), ElementsAre(2, 4));
}

class RefusedTest : public LazyTest {};

TEST_F(RefusedTest, AStepThatDoesNotCompileIsComputedOpByOp) {
  open("watched");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  int compiles = 0;
  watch.on_compile = [&] { return ++compiles == 1 ? "too long" : nullptr; };
  record(y, "aten::neg", {&x});
  scale(y, 3);
  EXPECT_THAT(message_of([&] { sync(); }), HasSubstr("too long"));
  device().wait();
  EXPECT_THAT(read(y), ElementsAre(-3, -6));
  EXPECT_THAT(read(x), ElementsAre(1, 2));
}

TEST_F(RefusedTest, AnOpThatDoesNotCompileLosesNoState) {
  open("watched");
  LazyStorage x(device());
  fill(x, {1, 2});
  watch.on_compile = [] { return "out of patience"; };
  scale(x, 3);
  EXPECT_THAT(message_of([&] { sync(); }), HasSubstr("out of patience"));
  device().wait();
  watch.on_compile = nullptr;
  EXPECT_THAT(read(x), ElementsAre(1, 2));  // the barrier has told
}

TEST_F(RefusedTest, WhatARunHasConsumedIsLost) {
  const Unvalidated alone;
  open("watched");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  fill(y, {3, 4});
  device().wait();
  watch.after_execute = [] { throw std::runtime_error("too late"); };
  scale(x, 2);
  sync_and_wait();
  watch.after_execute = nullptr;
  EXPECT_THAT(read_error(x), HasSubstr("too late"));
  EXPECT_THAT(read_error(x), HasSubstr("too late"));
  EXPECT_THAT(read(y), ElementsAre(3, 4));
}

}  // namespace
}  // namespace ltc
