#include "core/run/device/lazy_device.h"

#include <thread>

#include "core/compile/lowering/precision.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST_F(LazyTest, AFailedCompileLosesItsValuesAndTheNextStepWorks) {
  open("watched");
  LazyStorage x(device()), y(device()), after(device());
  fill(x, {1, 2});
  const std::string message = "aten::neg: out of patience [watched]";
  watch.on_compile = [] { return "out of patience"; };
  record(y, "aten::neg", {&x});
  EXPECT_EQ(message_of([&] { sync(); }), message);
  device().wait();
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

TEST_F(LazyTest, ACompileWithoutMemoryIsTriedAgainWithoutOtherPrograms) {
  open("watched");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  watch.code = LTC_RESOURCE_EXHAUSTED;
  int compiles = 0;
  watch.on_compile = [&] { return compiles++ == 0 ? "no memory for it" : nullptr; };
  record(y, "aten::neg", {&x});
  EXPECT_THAT(read(y), ElementsAre(-1, -2));
  EXPECT_EQ(compiles, 2);
  EXPECT_EQ(metrics::counter_value(metrics::kRecoveries), 0);
}

TEST_F(LazyTest, AFailedRunLosesItsValuesAndTheNextStepWorks) {
  open("watched_async");
  LazyStorage x(device()), y(device());
  fill(x, {1, 2});
  device().wait();
  watch.on_execute = [] { return "no memory today"; };
  record(y, "aten::neg", {&x});
  sync_and_wait();
  watch.on_execute = nullptr;
  record(y, "aten::neg", {&y});
  EXPECT_EQ(read_error(y), "aten::neg: no memory today [watched_async]");
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
