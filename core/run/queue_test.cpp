#include "core/run/queue.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "core/run/fork.h"
#include "core/run/test_support.h"

#if defined(__SANITIZE_THREAD__)
// An error is read by one thread and freed by another; libstdc++ counts its references where the sanitizer does not see it.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using ProgramRef = std::shared_ptr<const Program>;

constexpr const char* kNeg = "graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) return %1 }";
constexpr const char* kDouble = "graph(%0: f32[2]) { %1: f32[2] = aten::add.Tensor(%0, %0) return %1 }";
constexpr const char* kSin = "graph(%0: f32[2]) { %1: f32[2] = aten::sin(%0) return %1 }";

// The test plugin claims neg, mul and add: sin is for the host.
constexpr const char* kHostInTheMiddle = R"(graph(%0: f32[2], %1: f64 scalar, %2: f32[2], %3: f64 scalar) {
    %4: f32[2] = aten::neg(%0)
    %5: f32[2] = aten::sin(%4)
    %6: f32[2] = aten::mul.Tensor(%5, %3)
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })";

class QueueTest : public RunTest {
 protected:
  // Once per test, before anything else.
  void open(const std::string& plugin, size_t window = 2) { queue_.emplace(open_device(plugin), window); }
  DeviceQueue& queue() { return *queue_; }

  ProgramRef program(const char* text) { return compile(parse(text), queue().device()); }
  BufferRef upload(const Floats& values) { return queue().upload(host_value(values)); }
  Floats download(const BufferRef& buffer) { return ltc::testing::download(queue(), buffer); }

  std::vector<BufferRef> run_all(const ProgramRef& program, std::vector<BufferRef> inputs, std::vector<double> scalars = {}) {
    ltc::Run run{program, std::move(inputs), {}, {}, ++run_id_};
    for (const double scalar : scalars) run.scalars.push_back(Scalar{.f = scalar});
    for (const ValueId output : program->graph.outputs) {
      run.outputs.push_back(std::make_shared<Buffer>(queue(), program->graph.types[output]));
    }
    std::vector<BufferRef> outputs = run.outputs;
    queue().execute(std::move(run));
    return outputs;
  }
  // Of a program with one input and one output.
  BufferRef run(const ProgramRef& program, BufferRef input) {
    std::vector<BufferRef> inputs;
    inputs.push_back(std::move(input));
    return run_all(program, std::move(inputs)).at(0);
  }

  std::string download_error(const BufferRef& buffer) {
    return message_of([&] { download(buffer); });
  }

 private:
  std::optional<DeviceQueue> queue_;
  uint64_t run_id_ = 0;
};

class AnyQueueTest : public QueueTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Plugins, AnyQueueTest, ::testing::Values("test", "test_async", "test_slow"),
                         [](const auto& info) { return info.param; });

TEST_P(AnyQueueTest, BytesGoThereAndBack) {
  open(GetParam());
  const BufferRef buffer = upload({1, 2, 3});
  EXPECT_THAT(download(buffer), ElementsAre(1, 2, 3));
  EXPECT_THAT(download(buffer), ElementsAre(1, 2, 3));
  EXPECT_EQ(metrics::counter_value(metrics::kBytesToDevice), 12);
  EXPECT_EQ(metrics::counter_value(metrics::kBytesFromDevice), 24);
}

// ---- two devices of one plugin

class TwoQueuesTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    const auto plugin = load_plugin("test_two");
    for (const uint32_t ordinal : {0, 1}) queues_.push_back(std::make_unique<DeviceQueue>(plugin->open_device(ordinal), 2));
  }
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
};

TEST_F(TwoQueuesTest, BytesGoFromOneToTheOtherWithoutTheHost) {
  DeviceQueue &a = *queues_[0], &b = *queues_[1];
  EXPECT_TRUE(b.copies_from(a, f32({3})));
  EXPECT_FALSE(b.copies_from(*std::make_unique<DeviceQueue>(open_device("test"), 2), f32({3})));
  const BufferRef there = b.fetch(a.upload(host_value({1, 2, 3})));
  const BufferRef back = a.fetch(there);
  EXPECT_THAT(ltc::testing::download(b, there), ElementsAre(1, 2, 3));
  EXPECT_THAT(ltc::testing::download(a, back), ElementsAre(1, 2, 3));
  EXPECT_EQ(metrics::counter_value(metrics::kBytesBetweenDevices), 24);
  EXPECT_EQ(metrics::counter_value(metrics::kBytesToDevice), 12);
}

TEST_F(TwoQueuesTest, AnErrorGoesAlong) {
  auto failed = std::make_shared<Buffer>(*queues_[0], f32({3}));
  failed->error = std::make_exception_ptr(Error(Code::kInternal, "nobody made it"));
  const BufferRef fetched = queues_[1]->fetch(failed);
  EXPECT_THAT(message_of([&] { ltc::testing::download(*queues_[1], fetched); }), HasSubstr("nobody made it"));
}

// ---- one device

TEST_P(AnyQueueTest, AnEmptyValueHasABufferToo) {
  open(GetParam());
  EXPECT_THAT(download(upload({})), IsEmpty());
  EXPECT_EQ(metrics::counter_value(metrics::kBytesToDevice), 0);
}

TEST_F(QueueTest, AValueOfRankZero) {
  open("watched");
  const HostValue value = allocate_host_value(scalar_type(DType::kF32));
  *static_cast<float*>(value.data.get()) = 3;
  EXPECT_THAT(download(queue().upload(value)), ElementsAre(3));
}

TEST_P(AnyQueueTest, AnUploadKeepsItsBytesUntilTheyAreCopied) {
  open(GetParam());
  std::vector<BufferRef> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back(upload(Floats(100, static_cast<float>(i))));
  for (int i = 0; i < 20; ++i) EXPECT_THAT(download(buffers[i]), Each(static_cast<float>(i)));
}

TEST_P(AnyQueueTest, RunsOneAfterTheOther) {
  open(GetParam());
  const ProgramRef twice = program(kDouble);
  BufferRef value = upload({1, -3});
  for (int i = 0; i < 10; ++i) value = run(twice, std::move(value));
  EXPECT_THAT(download(value), ElementsAre(1024, -3072));
  EXPECT_EQ(metrics::counter_value(metrics::kRuns), 10);
}

TEST_P(AnyQueueTest, DeviceAndHostTakeTurns) {
  open(GetParam());
  const ProgramRef mixed = program(kHostInTheMiddle);
  ASSERT_THAT(mixed->steps, SizeIs(3));
  const BufferRef a = upload({1, 2}), b = upload({10, 20});
  const auto first = run_all(mixed, {a, b}, {7, 3}), second = run_all(mixed, {first[1], b}, {7, 2});
  EXPECT_THAT(download(first[0]), ElementsAre(297, 294));
  EXPECT_THAT(download(first[1]), ElementsAre(9, 18));
  EXPECT_THAT(download(second[0]), ElementsAre(182, 164));
  EXPECT_EQ(metrics::counter_value(metrics::kHostOps), 2);
  EXPECT_EQ(metrics::counter_value("aten::sin"), 2);
  EXPECT_EQ(metrics::counter_value("aten::neg"), 0);
}

TEST_P(AnyQueueTest, DrainWaitsForTheDevice) {
  open(GetParam());
  queue().drain();  // nothing was submitted
  const ProgramRef neg = program(kNeg);
  std::vector<BufferRef> outputs;
  for (int i = 0; i < 4; ++i) outputs.push_back(run(neg, upload({1, 2})));
  queue().drain();
  for (const BufferRef& output : outputs) {
    ASSERT_NE(output->handle, nullptr);
    EXPECT_TRUE(!output->completion || output->completion->finished());
  }
}

TEST_F(QueueTest, WhatWasWaitedForIsReachedWhenAskedAgain) {
  open("test");
  set_runs_here([] { return false; });  // so that the queue's thread does the work
  for (int i = 0; i < 300; ++i) {
    queue().mark()->wait();
    set_runs_here([] { return true; });
    EXPECT_TRUE(queue().mark()->reached()) << "in round " << i;
    set_runs_here([] { return false; });
  }
}

TEST_P(AnyQueueTest, StopEndsWhatWasSubmittedAndRefusesTheRest) {
  open(GetParam());
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2}), output = run(neg, input);
  queue().stop();
  EXPECT_NE(output->handle, nullptr);
  EXPECT_EQ(metrics::counter_value(metrics::kRuns), 1);
  EXPECT_EQ(error_of([&] { upload({1}); }).code(), Code::kCancelled);
  EXPECT_EQ(error_of([&] { run(neg, input); }).code(), Code::kCancelled);
  EXPECT_EQ(error_of([&] { download(output); }).code(), Code::kCancelled);
  queue().drain();
  queue().stop();
}

TEST_F(QueueTest, StopBeforeTheFirstSubmission) {
  open("test");
  queue().stop();
  EXPECT_EQ(error_of([&] { upload({1}); }).code(), Code::kCancelled);
}

TEST_F(QueueTest, TheDeviceSeesRunsInTheOrderOfSubmission) {
  open("watched_async");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  for (int i = 0; i < 20; ++i) run(neg, input);
  queue().drain();
  std::vector<uint64_t> expected, seen;
  for (uint64_t id = 1; id <= 20; ++id) expected.push_back(id);
  for (const auto& execute : watch.executes()) seen.push_back(execute.run_id);
  EXPECT_EQ(seen, expected);
}

TEST_F(QueueTest, AFullWindowBlocks) {
  Gate gate;
  watch.on_execute = [&]() -> const char* { return gate.wait(), nullptr; };
  open("watched", 2);
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  run(neg, input), run(neg, input);
  std::atomic<bool> returned = false;
  std::thread third([&] {
    run(neg, input);
    returned = true;
  });
  upload({1, 2});  // no run: it is not held back
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(returned);
  gate.open();
  third.join();
  queue().drain();
  EXPECT_THAT(watch.executes(), SizeIs(3));
}

TEST_F(QueueTest, ASlowDeviceIsNotRunAwayFrom) {
  constexpr int kWindow = 2;
  open("test_slow", kWindow);
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  std::vector<BufferRef> outputs;
  for (int submitted = 1; submitted <= 8; ++submitted) {
    outputs.push_back(run(neg, input));
    EXPECT_GE(metrics::counter_value(metrics::kRuns), submitted - kWindow);
  }
  EXPECT_THAT(download(outputs.back()), ElementsAre(-1, -2));
}

TEST_F(QueueTest, StopCancelsWhoWaitsForRoom) {
  Gate gate;
  watch.on_execute = [&]() -> const char* { return gate.wait(), nullptr; };
  open("watched", 1);
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2}), output = run(neg, input);
  std::thread blocked([&] { EXPECT_EQ(error_of([&] { run(neg, input); }).code(), Code::kCancelled); });
  std::thread stopping([&] { queue().stop(); });
  blocked.join();
  gate.open();
  stopping.join();
  queue().stop();
  EXPECT_THAT(watch.executes(), SizeIs(1));
  EXPECT_NE(output->handle, nullptr);
}

TEST_F(QueueTest, StoppingAndDrainingFromManyThreads) {
  open("test_async");
  run(program(kNeg), upload({1, 2}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([this, i] { i % 2 ? queue().stop() : queue().drain(); });
  for (std::thread& thread : threads) thread.join();
}

// ---- who waits

TEST_F(QueueTest, ThePluginSeesThatSomebodyWaits) {
  using Watched = WatchedPlugin<false>;
  const auto is_awaited = [] { return Watched::host->is_awaited(Watched::host->host); };
  Gate begun, go_on;
  watch.on_execute = [&]() -> const char* { return begun.open(), go_on.wait(), nullptr; };
  open("watched", 1);
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  const BufferRef output = run(neg, input);
  begun.wait();
  EXPECT_FALSE(is_awaited());
  for (const auto& wait : std::vector<std::function<void()>>{[&] { queue().drain(); }, [&] { queue().mark()->wait(); },
                                                             [&] { download(output); }, [&] { run(neg, input); }}) {
    std::thread waiting(wait);
    while (!is_awaited()) std::this_thread::yield();
    go_on.open();
    waiting.join();
    queue().drain();
    EXPECT_FALSE(is_awaited());
    begun.close(), go_on.close();
    run(neg, input);
    begun.wait();
  }
  go_on.open();
  queue().drain();
}

// ---- short programs

TEST_F(QueueTest, AShortProgramRunsWhereItIsSubmitted) {
  set_runs_here([] { return true; });
  open("watched");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  queue().drain();
  std::thread::id ran_on;
  watch.on_execute = [&]() -> const char* { return ran_on = std::this_thread::get_id(), nullptr; };
  run(neg, input);  // how long it takes is not known yet
  queue().drain();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  BufferRef output;
  for (int attempt = 0; attempt < 1000 && ran_on != std::this_thread::get_id(); ++attempt) {
    neg->typical_ns = 0;
    output = run(neg, input);
    queue().drain();  // returns a moment before the queue is idle
  }
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_THAT(download(output), ElementsAre(-1, -2));
  queue().stop();
  EXPECT_EQ(error_of([&] { run(neg, input); }).code(), Code::kCancelled);
}

TEST(ProgramTest, ADisturbedRunIsNotTypical) {
  Program program;
  program.note_run(90'000);
  program.note_run(6'000);
  EXPECT_EQ(program.typical_ns, 6'000);
  program.note_run(100'000);
  EXPECT_LT(program.typical_ns, 30'000);
  for (int i = 0; i < 20; ++i) program.note_run(100'000);
  EXPECT_GT(program.typical_ns, 80'000);
}

TEST_F(QueueTest, WorkSubmittedDuringAShortProgramFollowsIt) {
  set_runs_here([] { return true; });
  Gate running, go_on;
  watch.on_execute = [&]() -> const char* { return running.open(), go_on.wait(), nullptr; };
  open("watched");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  queue().drain();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // idle
  neg->typical_ns = 0;
  std::thread here([&] { run(neg, input); });
  running.wait();
  std::thread reading([&] { EXPECT_THAT(download(input), ElementsAre(1, 2)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the queue's thread was woken, and found the device taken
  go_on.open();
  here.join();
  reading.join();
}

// ---- errors

TEST_F(QueueTest, AnErrorReachesWhoeverReadsTheValue) {
  for (const char* plugin : {"watched", "watched_async"}) {
    open(plugin);
    watch.seen.clear();
    {
      const ProgramRef neg = program(kNeg), sin = program(kSin);
      const BufferRef input = upload({1, 2});
      queue().drain();
      watch.on_execute = [&] { return watch.executes().size() == 1 ? "no memory today" : nullptr; };
      const BufferRef failed = run(neg, input), after = run(neg, failed), on_host = run(sin, after), other = run(neg, input);
      const std::string message = cat("[", plugin, "] execute: no memory today (in aten::neg)");
      for (const BufferRef& buffer : {failed, after, on_host, failed}) EXPECT_EQ(download_error(buffer), message);
      EXPECT_EQ(error_of([&] { download(on_host); }).code(), Code::kResourceExhausted);
      EXPECT_THAT(download(other), ElementsAre(-1, -2));
      EXPECT_THAT(watch.executes(), SizeIs(2));  // what read the failed value never ran
      queue().drain();
    }
    watch.on_execute = nullptr;
  }
}

TEST_F(QueueTest, AnErrorOfTheEventReachesWhoeverReadsTheValue) {
  open("test_fails");  // every second run, through its event
  const ProgramRef neg = program(kNeg), sin = program(kSin);
  const BufferRef input = upload({1, 2});
  const BufferRef good = run(neg, input), failed = run(neg, input);
  const BufferRef after = run(neg, failed), on_host = run(sin, after), last = run(neg, after);
  for (const BufferRef& buffer : {failed, after, on_host, last}) {
    EXPECT_EQ(download_error(buffer), "[test_fails] event_wait: every second run fails (in aten::neg)");
  }
  EXPECT_THAT(download(good), ElementsAre(-1, -2));
  EXPECT_THAT(download(input), ElementsAre(1, 2));
  queue().drain();
}

TEST_F(QueueTest, AnErrorThatIsKnownByNowReachesLaterWork) {
  open("test_fails");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  run(neg, input);
  const BufferRef failed = run(neg, input);
  queue().drain();  // the event has been waited for and is gone
  const BufferRef after = run(neg, failed);
  queue().drain();
  const BufferRef other = run(neg, input);  // the third run of the device
  EXPECT_EQ(download_error(after), "[test_fails] event_wait: every second run fails (in aten::neg)");
  EXPECT_EQ(download_error(failed), "[test_fails] event_wait: every second run fails (in aten::neg)");
  EXPECT_THAT(download(other), ElementsAre(-1, -2));
}

TEST_F(QueueTest, AThrowingPluginIsAnErrorOfTheValue) {
  for (const char* plugin : {"watched", "watched_async"}) {
    open(plugin);
    {
      const ProgramRef neg = program(kNeg);
      const BufferRef input = upload({1, 2});
      queue().drain();
      watch.on_execute = []() -> const char* { throw std::runtime_error("no luck today"); };
      const BufferRef output = run(neg, input);
      EXPECT_EQ(download_error(output), cat("[", plugin, "] the plugin threw from execute: no luck today (in aten::neg)"));
      watch.on_execute = nullptr;
      EXPECT_THAT(download(run(neg, input)), ElementsAre(-1, -2));
    }
  }
}

TEST_F(QueueTest, APluginThatThrowsFromItsClaimsFailsToCompile) {
  open("test_throws");
  EXPECT_EQ(message_of([&] { program(kNeg); }), "[test_throws] the plugin threw from claims: not a std::exception");
  EXPECT_THAT(download(upload({1, 2})), ElementsAre(1, 2));
}

TEST_F(QueueTest, WhatAThrowingPluginConsumedIsNotFreedTwice) {
  open("watched");
  const ProgramRef inplace = program("graph(%0: f32[2] -> 0) { %1: f32[2] = aten::neg(%0) return %1 }");
  BufferRef input = upload({1, 2});
  queue().drain();
  watch.after_execute = [] { throw std::runtime_error("too late"); };
  const BufferRef output = run(inplace, std::move(input));
  EXPECT_THAT(download_error(output), HasSubstr("too late"));
  EXPECT_THAT(watch.last_donated(), ElementsAre(1));
}

TEST_F(QueueTest, ARefusedRunConsumesNothing) {
  open("watched");
  const ProgramRef inplace = program("graph(%0: f32[2] -> 0) { %1: f32[2] = aten::neg(%0) return %1 }");
  BufferRef input = upload({1, 2});
  queue().drain();
  watch.on_execute = [] { return "no memory today"; };
  EXPECT_THAT(download_error(run(inplace, std::move(input))), HasSubstr("no memory today"));
  queue().drain();
  EXPECT_EQ(queue().device().memory_stats().in_use_bytes, 0u);
}

TEST_P(AnyQueueTest, AnErrorOfTheHostReachesWhoeverReadsTheValue) {
  open(GetParam());
  const ProgramRef cos = program("graph(%0: f32[2]) { %1: f32[2] = aten::cos(%0) %2: f32[2] = aten::neg(%1) return %2 }");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2}), failed = run(cos, input), after = run(neg, failed), other = run(neg, input);
  EXPECT_EQ(download_error(failed), "cos has no value here");
  EXPECT_EQ(download_error(after), "cos has no value here");
  EXPECT_THAT(download(other), ElementsAre(-1, -2));
}

TEST_F(QueueTest, WithoutAHostRunnerAHostStepFails) {
  set_host_runner(nullptr);
  open("test");
  const BufferRef output = run(program(kSin), upload({1, 2}));
  EXPECT_EQ(error_of([&] { download(output); }).code(), Code::kUnsupported);
}

TEST_F(QueueTest, AHostRunnerThatForgetsAnOutputIsAnError) {
  set_host_runner([](const Graph&, std::span<const HostValue>, std::span<const Scalar>) { return std::vector<HostValue>(); });
  open("test");
  const BufferRef output = run(program(kSin), upload({1, 2}));
  EXPECT_EQ(download_error(output), "the host runner gave 0 outputs for 1");
}

TEST_F(QueueTest, AFailedTransferReachesWhoeverReadsTheValue) {
  std::atomic<int> transfers = 0, bad = 1;
  watch.on_transfer = [&] { return ++transfers == bad ? "the link is down" : nullptr; };
  open("watched");
  const ProgramRef neg = program(kNeg), sin = program(kSin);
  const BufferRef failed = upload({1, 2}), after = run(neg, failed), input = upload({3, 4});
  EXPECT_EQ(download_error(failed), "[watched] transfer: the link is down");
  EXPECT_EQ(download_error(after), "[watched] transfer: the link is down");
  EXPECT_THAT(download(input), ElementsAre(3, 4));

  // The result of a host step on its way to the device: the buffer was made, its bytes never came.
  bad = transfers + 2;
  const BufferRef output = run(sin, input), later = run(neg, output);
  EXPECT_EQ(download_error(output), "[watched] transfer: the link is down");
  EXPECT_EQ(download_error(later), "[watched] transfer: the link is down");
  bad = transfers + 1;
  EXPECT_EQ(download_error(input), "[watched] transfer: the link is down");
  EXPECT_THAT(download(input), ElementsAre(3, 4));
}

TEST_F(QueueTest, ABufferThatThePluginCannotHold) {
  open("test");
  const BufferRef buffer = queue().upload(allocate_host_value(intern_contiguous(DType::kI32, std::vector<int64_t>{2})));
  EXPECT_EQ(error_of([&] { download(buffer); }).code(), Code::kUnsupported);
}

TEST_F(QueueTest, DoubleIsKeptAsSingleByADeviceWithoutIt) {
  open("test");
  HostValue value = allocate_host_value(intern_contiguous(DType::kF64, std::vector<int64_t>{2}));
  auto* numbers = static_cast<double*>(value.data.get());
  numbers[0] = 0.1, numbers[1] = -3;
  const BufferRef buffer = queue().upload(value);
  const int64_t sent = metrics::counter_value(metrics::kBytesToDevice);
  double received[2] = {};
  queue().download(buffer, received);
  EXPECT_THAT(received, ElementsAre(double{0.1f}, -3.0));
  EXPECT_EQ(metrics::counter_value(metrics::kBytesToDevice) - sent, 8);
}

// ---- the plugin that only has memory

TEST_F(QueueTest, TheHostComputesForAPluginThatDoesNot) {
  open("test_memory");
  const auto outputs = run_all(program(kHostInTheMiddle), {upload({1, 2}), upload({10, 20})}, {7, 3});
  EXPECT_THAT(download(outputs[0]), ElementsAre(297, 294));
  EXPECT_THAT(download(outputs[1]), ElementsAre(9, 18));
  EXPECT_EQ(metrics::counter_value(metrics::kHostOps), 4);
}

// ---- memory

TEST_P(AnyQueueTest, LeavesNothingBehind) {
  open(GetParam());
  {
    const ProgramRef mixed = program(kHostInTheMiddle);
    const BufferRef b = upload({10, 20});
    BufferRef a = upload({1, 2});
    for (int i = 0; i < 3; ++i) a = run_all(mixed, {a, b}, {7, 3}).at(1);
    EXPECT_THAT(download(a), ElementsAre(9, 18));
  }
  const BufferRef last = upload({1});
  download(last);  // comes after the plugin has freed what was given back
  EXPECT_EQ(queue().device().memory_stats().in_use_bytes, 4u);
}

TEST_F(QueueTest, AnInputIsDonatedWhenNobodyElseHasIt) {
  open("watched");
  const ProgramRef inplace = program(R"(graph(%0: f32[2] -> 0, %1: f32[2]) {
    %2: f32[2] = aten::add.Tensor(%0, %1)
    return %2 })");
  const BufferRef b = upload({10, 20});
  const auto add = [&](std::vector<BufferRef> inputs) {
    const BufferRef output = run_all(inplace, std::move(inputs)).at(0);
    queue().drain();
    return output;
  };
  std::vector<BufferRef> inputs;
  inputs.push_back(upload({1, 2}));
  inputs.push_back(b);
  BufferRef sum = add(std::move(inputs));
  EXPECT_THAT(watch.last_donated(), ElementsAre(1, 0));
  EXPECT_THAT(download(sum), ElementsAre(11, 22));
  const BufferRef held = sum;
  EXPECT_THAT(download(add({held, b})), ElementsAre(21, 42));
  EXPECT_THAT(watch.last_donated(), ElementsAre(0, 0));
  EXPECT_THAT(download(held), ElementsAre(11, 22));
  // One buffer for both params: the run itself has it twice.
  inputs.assign(2, upload({1, 2}));
  EXPECT_THAT(download(add(std::move(inputs))), ElementsAre(2, 4));
  EXPECT_THAT(watch.last_donated(), ElementsAre(0, 0));
}

// ---- fork

TEST_F(QueueTest, AForkedChildIsRefusedAndTheParentGoesOn) {
  watch_forks();
  LazyDevice device(0, open_device("test_async"));
  DeviceQueue& queue = device.queue();
  {
    LazyStorage storage(device);
    BufferRef buffer = queue.upload(host_value({1, 2}));
    Recorder(device).bind(storage, buffer, f32({2}));
    EXPECT_FALSE(forked());
    const pid_t child = fork();
    if (child == 0) {
      // What is true of each of these is bit i of the exit code; no test framework in here.
      const auto refuses = [](auto&& call) {
        try {
          call();
        } catch (const Error& error) {
          return error.code() == Code::kUnsupported &&
                 std::string_view(error.what()) == "cannot use ltc in a forked process, use the spawn start method";
        }
        return false;
      };
      int code = forked() ? 1 : 0;
      code |= refuses([&] { Recorder recorder(device); }) ? 2 : 0;
      code |= refuses([&] { device.sync(metrics::kMarkStep); }) ? 4 : 0;
      code |= refuses([&] { queue.upload(HostValue{f32({2}), nullptr}); }) ? 8 : 0;
      code |= refuses([&] {
        float values[2];
        queue.download(buffer, values);
      })
                  ? 16
                  : 0;
      device.wait();
      { LazyStorage gone(device); }
      buffer.reset();
      queue.stop();
      _exit(code | 32);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 63);
    EXPECT_FALSE(forked());
    EXPECT_THAT(ltc::testing::download(queue, buffer), ElementsAre(1, 2));
  }
}

}  // namespace
}  // namespace ltc
