#include "core/run/queue/queue.h"

#include <atomic>
#include <future>

#include "core/run/testing/queue_test_support.h"
#include "core/testing/refused_threads.h"

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

TEST_F(QueueTest, RunsAreSubmittedWhileTheirInputsAreOnTheirWay) {
  constexpr int kRuns = 8;
  open("test_slow", kRuns);
  const ProgramRef neg = program(kNeg);
  std::vector<BufferRef> outputs;
  for (int i = 0; i < kRuns; ++i) outputs.push_back(run(neg, upload({1, static_cast<float>(i)})));
  while (metrics::counter_value(metrics::kRuns) < kRuns) std::this_thread::yield();
  EXPECT_FALSE(outputs[kRuns / 2]->completion->finished());  // a few runs' time is left for the scheduler's moods
  for (int i = 0; i < kRuns; ++i) EXPECT_THAT(download(outputs[i]), ElementsAre(-1, -i));
}

TEST_F(QueueTest, HostMemoryIsKeptAsLongAsTheDeviceReadsIt) {
  open("test_slow");
  const BufferRef before = run(program(kNeg), upload({1, 2}));
  HostValue value = host_value(Floats(1 << 20, 3));
  const std::weak_ptr<void> bytes = value.data;
  const BufferRef buffer = queue().upload(std::move(value));
  while (metrics::counter_value(metrics::kBytesToDevice) < 4 << 20) std::this_thread::yield();
  EXPECT_TRUE(!bytes.expired() || before->completion->finished());
  EXPECT_THAT(download(buffer), Each(3));
  EXPECT_TRUE(bytes.expired());
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
  EXPECT_EQ(metrics::counter_value(metrics::kHostStepOps), 2);
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
    queue().add_fence()->wait();
    set_runs_here([] { return true; });
    EXPECT_TRUE(queue().add_fence()->reached()) << "in round " << i;
    set_runs_here([] { return false; });
  }
}

TEST_F(QueueTest, WhoAsksIsNotHeldUpByWhoWaits) {
  Gate waits, go_on;
  std::atomic<std::thread::id> waiter;
  watch.on_wait = [&](ltc_event*, uint64_t) -> const char* {
    if (std::this_thread::get_id() == waiter) waits.open(), go_on.wait();
    return nullptr;
  };
  open("watched_async");
  const ProgramRef neg = program(kNeg);
  const BufferRef output = run(neg, upload({1, 2}));
  const auto fence = queue().add_fence();
  std::thread waiting([&] {
    waiter = std::this_thread::get_id();
    fence->wait();
  });
  waits.wait();
  const auto asking = std::async(std::launch::async, [&] {
    while (!fence->reached()) std::this_thread::yield();
    run(neg, output);  // the queue asks whether its operand is there
    queue().add_fence();
  });
  EXPECT_EQ(asking.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  go_on.open();
  waiting.join();
  asking.wait();
  queue().drain();
  watch.on_wait = nullptr;
}

TEST_F(QueueTest, AnUploadThatFindsNoThreadTakesNoRoom) {
  open("test");
  const auto upload_much = [&] { return queue().upload(allocate_host_value(f32({(300 << 20) / 4}))); };  // nothing beside it
  threads_left = 0;
  EXPECT_THROW(upload_much(), std::system_error);
  threads_left = kAnyThreads;
  upload_much();  // would wait for room
  queue().drain();
}

TEST_F(QueueTest, TheResultsOfARunThatFindsNoThreadFailToo) {
  open("test");
  const ProgramRef neg = program(kNeg);
  const auto output = std::make_shared<Buffer>(queue(), neg->graph.types[neg->graph.outputs[0]]);
  const BufferRef input = upload({1, 2});
  threads_left = 0;
  EXPECT_THROW(queue().execute({neg, {input}, {}, {output}, 1}), std::system_error);
  threads_left = kAnyThreads;
  EXPECT_THROW(download(output), std::system_error);
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
  const auto fill_queue = [&] {
    for (size_t i = 0; i < InFlightLimit::kMostRuns; ++i) run(neg, input);
  };
  for (const auto& wait : std::vector<std::function<void()>>{[&] { queue().drain(); }, [&] { queue().add_fence()->wait(); },
                                                             [&] { download(output); }, fill_queue}) {
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

class ShortProgramsTest : public QueueTest {
 protected:
  ShortProgramsTest() {
    set_runs_here([] { return true; });
    open("watched");
    neg = program(kNeg);
    input = upload({1, 2});
    queue().drain();
    watch.on_execute = [&]() -> const char* { return ran_on = std::this_thread::get_id(), nullptr; };
  }
  bool ran_here() const { return ran_on == std::this_thread::get_id(); }

  ProgramRef neg;
  BufferRef input;
  std::thread::id ran_on;
};

TEST_F(ShortProgramsTest, RunWhereTheyAreSubmitted) {
  run(neg, input);  // how long it takes is not known yet
  queue().drain();
  EXPECT_FALSE(ran_here());
  BufferRef output;
  for (int attempt = 0; attempt < 1000 && !ran_here(); ++attempt) {
    neg->typical_ns = 0;
    output = run(neg, input);
    queue().drain();  // returns a moment before the queue is idle
  }
  EXPECT_TRUE(ran_here());
  EXPECT_THAT(download(output), ElementsAre(-1, -2));
  queue().stop();
  EXPECT_EQ(error_of([&] { run(neg, input); }).code(), Code::kCancelled);
}

TEST_F(ShortProgramsTest, ThatFollowEachOtherRunBesideWhoSubmitsThem) {
  const auto submit = [&](bool is_awaited) {
    neg->typical_ns = 10'000;
    const BufferRef output = std::make_shared<Buffer>(queue(), input->type);
    queue().execute({neg, {input}, {}, {output}, 1, is_awaited});
    EXPECT_THAT(download(output), ElementsAre(-1, -2));
    return ran_here();
  };
  int here = 0, beside = 0;
  for (int i = 0; i < 1000; ++i) submit(false) ? ++here : ++beside;
  EXPECT_GT(beside, 0);
  while (!submit(true)) std::this_thread::yield();  // a moment after the thread has said that it is done
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

// ---- the plugin that only has memory

TEST_F(QueueTest, TheHostComputesForAPluginThatDoesNot) {
  open("test_memory");
  const auto outputs = run_all(program(kHostInTheMiddle), {upload({1, 2}), upload({10, 20})}, {7, 3});
  EXPECT_THAT(download(outputs[0]), ElementsAre(297, 294));
  EXPECT_THAT(download(outputs[1]), ElementsAre(9, 18));
  EXPECT_EQ(metrics::counter_value(metrics::kHostStepOps), 4);
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

// ---- other sizes

TEST_F(QueueTest, AResizedBufferHasTheBeginningAndZeros) {
  for (const char* plugin : {"test", "test_async", "test_memory"}) {
    open(plugin);
    const BufferRef buffer = upload({1, 2, 3});
    EXPECT_THAT(download(queue().resized(buffer, f32({5}))), ElementsAre(1, 2, 3, 0, 0));
    EXPECT_THAT(download(queue().resized(buffer, f32({2}))), ElementsAre(1, 2));
    EXPECT_THAT(download(queue().resized(buffer, f32({3}))), ElementsAre(1, 2, 3));
    EXPECT_THAT(download(queue().resized(buffer, f32({0}))), IsEmpty());
    EXPECT_THAT(download(queue().resized(upload({}), f32({2}))), ElementsAre(0, 0));
    EXPECT_THAT(download(buffer), ElementsAre(1, 2, 3));
  }
}

}  // namespace
}  // namespace ltc
