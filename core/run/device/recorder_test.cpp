#include "core/run/device/recorder.h"

#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const TypeId kF2 = f32({2});

TEST_F(LazyTest, AnEmptyStorageHasNoValue) {
  open("test");
  LazyStorage x(device());
  EXPECT_TRUE(Recorder(device()).is_empty(x));
  EXPECT_EQ(device().computed(x, metrics::kReadBarrier), nullptr);
  EXPECT_EQ(error_of([&] { Recorder(device()).read(x); }).code(), Code::kInternal);
}

TEST_F(LazyTest, RebindingLeavesCapturedValuesAlone) {
  open("test");
  LazyStorage a(device()), sum(device()), shared(device());
  fill(a, {1, 2});
  record(sum, "aten::add.Tensor", {&a, &a});
  Recorder(device()).share(shared, a, kF2);
  record(a, "aten::neg", {&a});
  record(a, "aten::neg", {&a});
  record(a, "aten::add.Tensor", {&a, &sum});
  EXPECT_THAT(read(a), ElementsAre(3, 6));
  EXPECT_THAT(read(sum), ElementsAre(2, 4));
  EXPECT_THAT(read(shared), ElementsAre(1, 2));
}

TEST_F(LazyTest, SharersOfATracedValueAllGetIt) {
  open("watched");
  LazyStorage a(device()), c(device());
  auto b = std::make_unique<LazyStorage>(device());
  fill(a, {1, 2});
  record(a, "aten::neg", {&a});
  Recorder(device()).share(*b, a, kF2);
  Recorder(device()).share(c, *b, kF2);
  Recorder(device()).share(c, c, kF2);
  b.reset();
  record(a, "aten::add.Tensor", {&a, &a});
  EXPECT_THAT(read(c), ElementsAre(-1, -2));
  EXPECT_THAT(read(a), ElementsAre(-2, -4));
  EXPECT_EQ(watch.executes().at(0).outputs, 2u);
}

TEST_F(LazyTest, OneValueForSeveralStoragesIsOneOutput) {
  open("watched");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  record(a, "aten::neg", {&a});
  Recorder(device()).share(b, a, kF2);
  sync();
  EXPECT_EQ(device().computed(a, metrics::kReadBarrier), device().computed(b, metrics::kReadBarrier));
  device().wait();
  EXPECT_EQ(watch.executes().at(0).outputs, 1u);
}

TEST_F(LazyTest, OnlyWhatSomebodyHoldsIsComputed) {
  open("watched");
  LazyStorage a(device()), kept(device()), overwritten(device());
  fill(a, {1, 2});
  {
    LazyStorage gone(device());
    record(gone, "aten::relu", {&a});
    record(kept, "aten::neg", {&a});
    record(overwritten, "aten::mul.Tensor", {&a, &gone});
    fill(overwritten, {7, 8});
  }
  EXPECT_EQ(device().trace_text(), R"(graph(%0: f32[2]) {
  %1: f32[2] = aten::neg(%0)
  return %1
}
)");
  sync_and_wait();
  EXPECT_EQ(watch.executes().at(0).outputs, 1u);
  EXPECT_THAT(read(kept), ElementsAre(-1, -2));
  EXPECT_THAT(read(overwritten), ElementsAre(7, 8));
  EXPECT_THAT(watch.executes(), SizeIs(1));
}

TEST_F(LazyTest, NothingToDoRunsNothing) {
  open("watched");
  sync();
  LazyStorage a(device());
  fill(a, {1, 2});
  {
    LazyStorage gone(device()), other(device());
    record(gone, "aten::neg", {&a}), record(other, "aten::neg", {&gone});
  }
  sync();
  read(a);
  device().wait();
  EXPECT_EQ(device().trace_text(), "graph() {\n  return\n}\n");
  EXPECT_THAT(watch.executes(), IsEmpty());
  EXPECT_EQ(metrics::counter_value(metrics::kMarkStep), 2);
  EXPECT_EQ(metrics::counter_value(metrics::kRuns), 0);
  EXPECT_EQ(compiled() + found(), 0);
}

TEST_F(LazyTest, ReadingTwiceIsOneParam) {
  open("test");
  LazyStorage a(device());
  fill(a, {1, 2});
  Recorder recorder(device());
  const ValueId value = recorder.read(a);
  EXPECT_EQ(recorder.read(a), value);
  EXPECT_EQ(recorder.type_of_value(value), kF2);
}

TEST_F(LazyTest, FurtherResultsAreValuesToo) {
  open("test");
  LazyStorage a(device()), half(device()), quarter(device());
  fill(a, {4, 8});
  const auto split = [&] {
    Recorder recorder(device());
    const std::vector<ValueId> inputs = {recorder.read(a)};
    const ValueId first = recorder.node(intern_op("test::split"), kF2, kNoAttrs, inputs);
    recorder.bind(half, first, kF2);
    recorder.bind(quarter, recorder.result(first, 1, kF2), kF2);
  };
  split();
  EXPECT_THAT(read(half), ElementsAre(2, 4));
  EXPECT_THAT(read(quarter), ElementsAre(1, 2));
  split();
  fill(half, {0, 0});
  EXPECT_THAT(read(quarter), ElementsAre(1, 2));
}

TEST_F(LazyTest, ViewsAreRememberedForOneTrace) {
  open("test");
  LazyStorage a(device());
  fill(a, {1, 2});
  const auto key_of = [&](Recorder& recorder) { return ViewKey{recorder.read(a), recorder.type(a), f32({1}), 1}; };
  {
    Recorder recorder(device());
    const ViewKey key = key_of(recorder);
    EXPECT_EQ(recorder.find_view(key), kNone);
    recorder.remember_view(key, 5);
    EXPECT_EQ(recorder.find_view(key), 5u);
    EXPECT_EQ(recorder.find_view({key.value, key.declared, key.view, 0}), kNone);
    EXPECT_EQ(recorder.find_view({key.value, key.declared, kF2, 1}), kNone);
    EXPECT_EQ(recorder.find_view({key.value, key.declared + 1, key.view, 1}), kNone);
    EXPECT_EQ(recorder.find_view({key.value + 1, key.declared, key.view, 1}), kNone);
  }
  sync();
  Recorder recorder(device());
  EXPECT_EQ(recorder.find_view(key_of(recorder)), kNone);
}

TEST_F(LazyTest, TraceText) {
  open("test");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  record(b, "aten::relu", {&a});
  scale(a, 3);
  const std::string text = R"(graph(%0: f32[2] -> 1, %2: f64 scalar) {
  %1: f32[2] = aten::relu(%0)
  %3: f32[2] = aten::mul.Tensor(%0, %2)
  return %1, %3
}
)";
  EXPECT_EQ(device().trace_text(), text);
  EXPECT_EQ(device().trace_text(), text);
  EXPECT_EQ(metrics::counter_value(metrics::kRuns), 0);
}

TEST_F(LazyTest, SaysWhenATraceIsLong) {
  open("test");
  LazyStorage a(device());
  fill(a, {1, 2});
  const auto record_neg = [&] {
    device().before_op(intern_op("aten::neg"));
    record(a, "aten::neg", {&a});
  };
  record_neg();
  EXPECT_FALSE(Recorder(device()).may_end());
  for (int i = 0; i < 40000; ++i) record_neg();
  EXPECT_GE(metrics::counter_value(metrics::kRepetition), 40000 / 512 - 1);
  EXPECT_THAT(read(a), ElementsAre(::testing::Not(0), ::testing::Not(0)));
}

// A loop whose batches only the trace holds: an eighth of the device's memory may they take.
TEST_F(LazyTest, ATraceEndsThatAloneHoldsMuchMemory) {
  constexpr size_t kBatch = 100, kBatches = 30, kInOneTrace = 3;
  watch.memory_bytes = 8 * kInOneTrace * kBatch * sizeof(float);
  open("watched");
  LazyStorage total(device());
  fill(total, Floats(kBatch, 0.f));
  for (size_t i = 0; i < kBatches; ++i) {
    LazyStorage batch(device());
    fill(batch, Floats(kBatch, 1.f));
    device().before_op(intern_op("aten::add.Tensor"));
    record(total, "aten::add.Tensor", {&total, &batch});
  }
  EXPECT_EQ(metrics::counter_value(metrics::kHeldMemory), static_cast<int64_t>((kBatches - 1) / (kInOneTrace + 1)));
  EXPECT_THAT(read(total), ::testing::Each(static_cast<float>(kBatches)));
}

TEST_F(LazyTest, WhatTheProgramHoldsEndsNoTrace) {
  constexpr size_t kBatch = 100, kBatches = 30;
  watch.memory_bytes = 8 * kBatch * sizeof(float);
  open("watched");
  LazyStorage total(device());
  fill(total, Floats(kBatch, 0.f));
  std::vector<std::unique_ptr<LazyStorage>> batches;
  for (size_t i = 0; i < kBatches; ++i) {
    batches.push_back(std::make_unique<LazyStorage>(device()));
    fill(*batches.back(), Floats(kBatch, 1.f));
    device().before_op(intern_op("aten::add.Tensor"));
    record(total, "aten::add.Tensor", {&total, batches.back().get()});
  }
  EXPECT_EQ(metrics::counter_value(metrics::kHeldMemory), 0);
  EXPECT_THAT(read(total), ::testing::Each(static_cast<float>(kBatches)));
}

}  // namespace
}  // namespace ltc
