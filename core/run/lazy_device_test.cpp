#include "core/run/lazy_device.h"

#include <cstdlib>
#include <thread>

#include "core/compile/precision.h"
#include "core/run/fallback_policy.h"
#include "core/run/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const TypeId kF2 = f32({2});

class AnyLazyTest : public LazyTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Plugins, AnyLazyTest, ::testing::Values("test", "test_async", "test_slow", "test_memory"),
                         [](const auto& info) { return info.param; });

TEST_P(AnyLazyTest, ComputesWhatWasRecorded) {
  open(GetParam());
  LazyStorage a(device()), b(device()), c(device());
  fill(a, {1, 2});
  fill(b, {10, 20});
  record(c, "aten::add.Tensor", {&a, &b});
  record(c, "aten::neg", {&c});
  EXPECT_EQ(metrics::counter_value(metrics::kRuns), 0);
  EXPECT_THAT(read(c), ElementsAre(-11, -22));
  EXPECT_THAT(read(a), ElementsAre(1, 2));
  EXPECT_THAT(read(c), ElementsAre(-11, -22));
  EXPECT_EQ(metrics::counter_value(metrics::kReadBarrier), 1);
  EXPECT_EQ(metrics::counter_value(metrics::kOpsRecorded), 2);
}

TEST_P(AnyLazyTest, StepsBuildOnEachOther) {
  open(GetParam());
  LazyStorage x(device());
  fill(x, {1, -1});
  for (int step = 0; step < 10; ++step) {
    scale(x, 2);
    sync();
  }
  EXPECT_THAT(read(x), ElementsAre(1024, -1024));
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(found(), 9);
}

// ---- what may be rounded

uint32_t allowed_now = 0;

class PrecisionTest : public LazyTest {
 protected:
  void SetUp() override {
    LazyTest::SetUp();
    set_read_precision([] { return allowed_now; });
  }
  void TearDown() override {
    set_read_precision(nullptr);
    allowed_now = 0;
    LazyTest::TearDown();
  }
  void step(LazyStorage& x) {
    scale(x, 2);
    sync();
  }
};

TEST_F(PrecisionTest, AnotherOneCompilesOnceAndTheFirstIsFoundAgain) {
  open("test_precision");
  LazyStorage x(device());
  fill(x, {1, -1});
  for (const uint32_t allowed : {0, 0, 1, 1, 0, 1}) {
    allowed_now = allowed;
    step(x);
  }
  EXPECT_THAT(read(x), ElementsAre(64, -64));
  EXPECT_EQ(compiled(), 2);
  EXPECT_EQ(found(), 4);
}

TEST_F(PrecisionTest, IsNothingToAPluginThatDoesNotAsk) {
  open("test");
  LazyStorage x(device());
  fill(x, {1, -1});
  for (allowed_now = 0; allowed_now < 4; ++allowed_now) step(x);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(found(), 3);
}

// ---- what a storage holds

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
  const auto key_of = [&](Recorder& recorder) { return ViewKey{recorder.read(a), f32({1}), 1}; };
  {
    Recorder recorder(device());
    const ViewKey key = key_of(recorder);
    EXPECT_EQ(recorder.find_view(key), kNone);
    recorder.remember_view(key, 5);
    EXPECT_EQ(recorder.find_view(key), 5u);
    EXPECT_EQ(recorder.find_view({key.value, key.view, 0}), kNone);
    EXPECT_EQ(recorder.find_view({key.value, kF2, 1}), kNone);
    EXPECT_EQ(recorder.find_view({key.value + 1, key.view, 1}), kNone);
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
  const auto is_long = [&] { return Recorder(device()).is_long(); };
  for (int i = 0; i < 1000; ++i) record(a, "aten::neg", {&a});
  EXPECT_FALSE(is_long());
  while (!is_long()) record(a, "aten::neg", {&a});
  sync();
  EXPECT_FALSE(is_long());
  EXPECT_THAT(read(a), ElementsAre(::testing::Not(0), ::testing::Not(0)));
}

// ---- places

LocationId here = kNoLocation;

class PlacesTest : public LazyTest {
 protected:
  PlacesTest() {
    set_locator([] { return here; });
  }
  ~PlacesTest() override { set_locator(nullptr); }
  void record_at(const char* place, LazyStorage& out, std::string_view op, std::vector<LazyStorage*> inputs) {
    here = intern_location(place);
    record(out, op, std::move(inputs));
  }
};

TEST_F(PlacesTest, NodesKnowTheirs) {
  open("test");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  for (int step = 0; step < 2; ++step) {
    {
      LazyStorage gone(device());
      record_at("a.py:1", gone, "aten::relu", {&a});
    }
    record_at("a.py:2", b, "aten::neg", {&a});
    record_at("a.py:3", b, "aten::relu", {&b});
    EXPECT_EQ(device().trace_text(), R"(graph(%0: f32[2]) {
  %1: f32[2] = aten::neg(%0)  # a.py:2
  %2: f32[2] = aten::relu(%1)  # a.py:3
  return %2
}
)");
    sync();
  }
}

TEST_F(PlacesTest, AreNoPartOfAProgramsIdentity) {
  open("test");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  for (const char* place : {"a.py:1", "a.py:2", "a.py:3"}) {
    record_at(place, b, "aten::neg", {&a});
    sync();
  }
  EXPECT_EQ(compiled(), 1);
}

TEST_F(PlacesTest, AreInErrorsOfRuns) {
  open("watched_async");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  watch.on_execute = [] { return "no memory today"; };
  record_at("a.py:1", b, "aten::neg", {&a});
  record_at("a.py:2", b, "aten::relu", {&b});
  EXPECT_EQ(read_error(b), "[watched_async] execute: no memory today (in a program of 2 ops, recorded at a.py:1 to a.py:2)");
  record_at("a.py:3", b, "aten::neg", {&a});
  EXPECT_EQ(read_error(b), "[watched_async] execute: no memory today (in aten::neg at a.py:3)");
}

TEST_F(PlacesTest, AreInTheAccountOfFallbacks) {
  open("test");
  LazyStorage a(device()), b(device()), c(device());
  fill(a, {1, 2});
  for (int step = 0; step < 3; ++step) {
    record_at("a.py:1", b, "aten::neg", {&a});
    record_at("a.py:2", b, "aten::sin", {&b});
    record_at("a.py:3", c, "aten::relu", {&b});
    record_at("a.py:4", c, "test::placed", {&c});
    sync_and_wait();
  }
  const std::vector<Fallback> all = fallbacks();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].op, "aten::sin");
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].bytes, 3 * 2 * 8);  // two floats in, two out
  EXPECT_EQ(all[1].op, "test::placed");
  EXPECT_EQ(all[1].where, "a.py:4");
  EXPECT_EQ(all[1].reason, "plugin test does not claim it");
  EXPECT_EQ(metrics::counter_value("aten::sin"), 3);
  EXPECT_EQ(metrics::counter_value(metrics::kFallbackBytes), 3 * 4 * 8);
  EXPECT_THAT(metrics::report(),
              HasSubstr("Fallback: test::placed\n  Count: 3\n  Bytes: 48\n  First at: a.py:4\n  Reason: plugin"));
  metrics::reset();
  EXPECT_THAT(fallbacks(), IsEmpty());
}

// ---- LTC_EAGER

class EagerTest : public PlacesTest {
 protected:
  EagerTest() { setenv("LTC_EAGER", "1", 1); }
  ~EagerTest() override { unsetenv("LTC_EAGER"); }
};

TEST_F(EagerTest, EveryOpRunsAtOnce) {
  open("watched_async");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  record(b, "aten::neg", {&a});
  EXPECT_TRUE(Recorder(device()).is_long());
  device().end_op();
  EXPECT_THAT(watch.executes(), SizeIs(1));
  record(b, "aten::neg", {&b});
  device().end_trace();
  EXPECT_THAT(watch.executes(), SizeIs(2));
  EXPECT_THAT(read(b), ElementsAre(1, 2));
  EXPECT_EQ(metrics::counter_value(metrics::kEagerBarrier), 2);
}

TEST_F(EagerTest, TheOpThrowsItsError) {
  open("watched_async");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  watch.on_execute = [] { return "no memory today"; };
  record_at("a.py:1", b, "aten::neg", {&a});
  EXPECT_EQ(message_of([&] { device().end_op(); }), "[watched_async] execute: no memory today (in aten::neg at a.py:1)");
  watch.on_execute = nullptr;
  record(b, "aten::neg", {&a});
  device().end_op();
  EXPECT_THAT(read(b), ElementsAre(-1, -2));
}

TEST_F(LazyTest, WithoutEagerAnOpWaits) {
  open("watched");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  record(b, "aten::neg", {&a});
  device().end_op();
  EXPECT_THAT(watch.executes(), IsEmpty());
}

// ---- donation

TEST_F(LazyTest, AReplacedBufferIsDonatedIfNobodyElseHasIt) {
  open("watched");
  LazyStorage x(device()), g(device());
  fill(x, {1, 2});
  fill(g, {10, 20});
  const auto step = [&] {
    record(x, "aten::add.Tensor", {&x, &g});
    sync_and_wait();
  };
  step();
  EXPECT_THAT(watch.last_donated(), ElementsAre(1, 0));
  {
    const BufferRef held = device().computed(x, metrics::kReadBarrier);
    step();
    EXPECT_THAT(watch.last_donated(), ElementsAre(0, 0));
    EXPECT_THAT(ltc::testing::download(device().queue(), held), ElementsAre(11, 22));
  }
  LazyStorage y(device());
  Recorder(device()).share(y, x, kF2);
  step();
  EXPECT_THAT(watch.last_donated(), ElementsAre(0, 0));
  step();
  EXPECT_THAT(watch.last_donated(), ElementsAre(1, 0));
  EXPECT_THAT(read(x), ElementsAre(41, 82));
  EXPECT_THAT(read(y), ElementsAre(21, 42));
  EXPECT_EQ(device().queue().device().memory_stats().in_use_bytes, 3 * 8u);
}

TEST_F(LazyTest, ABufferThatOnlyTheStorageReadsIsNotDonated) {
  open("watched");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  record(y, "aten::neg", {&x});
  sync_and_wait();
  EXPECT_THAT(watch.last_donated(), ElementsAre(0));
  EXPECT_THAT(read(x), ElementsAre(1, 2));
}

TEST_F(LazyTest, AReaderInTheNextTraceKeepsTheBuffer) {
  Gate gate;
  watch.on_execute = [&]() -> const char* { return gate.wait(), nullptr; };
  open("watched");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  Recorder(device()).share(y, x, kF2);
  record(x, "aten::neg", {&x});
  sync();
  record(y, "aten::neg", {&y});  // captures the buffer while the first run still waits for the device
  gate.open();
  device().wait();
  EXPECT_THAT(watch.last_donated(), ElementsAre(0));
  EXPECT_THAT(read(y), ElementsAre(-1, -2));
  EXPECT_THAT(read(x), ElementsAre(-1, -2));
  device().wait();
  EXPECT_THAT(watch.last_donated(), ElementsAre(1));
}

TEST_F(LazyTest, ATrainingLoopNeedsNoMoreMemoryFromStepToStep) {
  open("watched_async");
  LazyStorage x(device());
  fill(x, {1, 2});
  for (int i = 0; i < 20; ++i) {
    record(x, "aten::neg", {&x});
    sync();
  }
  EXPECT_THAT(read(x), ElementsAre(1, 2));  // comes after the plugin has freed what was given back
  EXPECT_EQ(device().queue().device().memory_stats().in_use_bytes, 8u);
  for (const auto& execute : watch.executes()) EXPECT_THAT(execute.donated, ElementsAre(1));
}

// ---- the cache

TEST_F(LazyTest, AnEqualStepIsFoundWhateverItsNumbers) {
  open("test");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  for (const double factor : {2.0, 3.0, 5.0}) {
    scale(x, factor);
    sync();
  }
  EXPECT_THAT(read(x), ElementsAre(30, 60));
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(found(), 2);
  record(y, "aten::neg", {&x});  // the same op, but the param stays
  sync();
  record(x, "aten::neg", {&x});
  sync();
  fill(x, {1, 2, 3});
  record(x, "aten::neg", {&x});
  EXPECT_THAT(read(x), ElementsAre(-1, -2, -3));
  EXPECT_EQ(compiled(), 4);
  EXPECT_EQ(found(), 2);
}

// ---- errors

TEST_F(LazyTest, AFailedCompilePoisonsItsValuesAndTheNextStepWorks) {
  open("watched");
  LazyStorage x(device()), y(device()), after(device());
  fill(x, {1, 2});
  const std::string message = "[watched] compile: out of patience (in aten::neg)";
  watch.on_compile = [] { return "out of patience"; };
  record(y, "aten::neg", {&x});
  EXPECT_EQ(message_of([&] { sync(); }), message);
  watch.on_compile = nullptr;
  EXPECT_EQ(read_error(y), message);
  EXPECT_EQ(read_error(y), message);
  record(after, "aten::relu", {&y});
  EXPECT_EQ(read_error(after), message);
  EXPECT_THAT(read(x), ElementsAre(1, 2));
  record(y, "aten::neg", {&x});  // the same trace as the one that failed: nothing of it was kept
  EXPECT_THAT(read(y), ElementsAre(-1, -2));
}

TEST_F(LazyTest, AReadThatCannotCompileThrowsAndTheNextStepWorks) {
  open("watched");
  LazyStorage x(device());
  fill(x, {1, 2});
  watch.on_compile = [] { return "out of patience"; };
  record(x, "aten::neg", {&x});
  EXPECT_THAT(read_error(x), HasSubstr("out of patience"));
  watch.on_compile = nullptr;
  fill(x, {1, 2});
  record(x, "aten::neg", {&x});
  EXPECT_THAT(read(x), ElementsAre(-1, -2));
}

TEST_F(LazyTest, AFailedRunPoisonsItsValuesAndTheNextStepWorks) {
  open("watched_async");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  device().wait();
  watch.on_execute = [&] { return watch.executes().size() == 1 ? "no memory today" : nullptr; };
  record(y, "aten::neg", {&x});
  sync();
  record(y, "aten::neg", {&y});
  EXPECT_EQ(read_error(y), "[watched_async] execute: no memory today (in aten::neg)");
  record(y, "aten::neg", {&x});
  EXPECT_THAT(read(y), ElementsAre(-1, -2));
}

TEST_F(LazyTest, AfterAStopEveryBarrierIsRefused) {
  open("test");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  device().queue().stop();
  for (int i = 0; i < 3; ++i) {
    record(y, "aten::neg", {&x});
    record(y, "aten::neg", {&y});
    EXPECT_EQ(error_of([&] { sync(); }).code(), Code::kCancelled);
    EXPECT_EQ(error_of([&] { read(y); }).code(), Code::kCancelled);
  }
  device().wait();
}

// ---- threads

TEST_P(AnyLazyTest, ThreadsRecordAndSyncAtOnce) {
  open(GetParam());
  constexpr int kThreads = 20, kSteps = 12;
  LazyStorage one(device());
  fill(one, {1, 1});
  std::vector<std::unique_ptr<LazyStorage>> storages;
  for (int t = 0; t < kThreads; ++t) {
    storages.push_back(std::make_unique<LazyStorage>(device()));
    fill(*storages.back(), {static_cast<float>(t), 0});
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      LazyStorage& x = *storages[t];
      for (int step = 1; step <= kSteps; ++step) {
        auto temporary = std::make_unique<LazyStorage>(device());
        record(*temporary, "aten::neg", {&x});
        record(*temporary, "aten::neg", {temporary.get()});
        record(x, "aten::add.Tensor", {temporary.get(), &one});
        if (step % 2 == 0) sync();
        if (step % 3 == 0) {
          EXPECT_THAT(read(x), ElementsAre(t + step, step));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_THAT(read(*storages[t]), ElementsAre(t + kSteps, kSteps));
}

// The value is promised from the moment the trace is cut; its run is queued only once it is compiled.
TEST_F(LazyTest, AReadDuringTheBarrierOfAnotherThreadWaitsForIt) {
  open("watched");
  Gate compiling, go_on;
  watch.on_compile = [&]() -> const char* { return compiling.open(), go_on.wait(), nullptr; };
  LazyStorage x(device());
  fill(x, {1, 2});
  record(x, "aten::neg", {&x});
  std::thread syncing([&] { sync(); });
  compiling.wait();
  std::thread reading([&] { EXPECT_THAT(read(x), ElementsAre(-1, -2)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the reader comes first, as good as always
  go_on.open();
  syncing.join();
  reading.join();
}

TEST_F(LazyTest, RecordingGoesOnWhileABarrierCompiles) {
  open("watched");
  Gate compiling, go_on;
  watch.on_compile = [&]() -> const char* { return compiling.open(), go_on.wait(), nullptr; };
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  fill(y, {3, 4});
  record(x, "aten::neg", {&x});
  std::thread syncing([&] { sync(); });
  compiling.wait();
  record(y, "aten::add.Tensor", {&y, &x});  // the value that is being compiled, too
  go_on.open();
  syncing.join();
  EXPECT_THAT(read(y), ElementsAre(2, 2));
}

}  // namespace
}  // namespace ltc
