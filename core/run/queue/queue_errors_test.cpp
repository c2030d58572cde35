#include "core/host/sized.h"
#include "core/run/testing/queue_test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class QueueErrorsTest : public QueueTest {};

class AnyQueueErrorsTest : public QueueTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Plugins, AnyQueueErrorsTest, ::testing::Values("test", "test_async", "test_slow"),
                         [](const auto& info) { return info.param; });

TEST_F(QueueErrorsTest, AnErrorReachesWhoeverReadsTheValue) {
  for (const char* plugin : {"watched", "watched_async"}) {
    open(plugin);
    watch.seen.clear();
    watch.code = LTC_RESOURCE_EXHAUSTED;
    {
      const ProgramRef neg = program(kNeg), sin = program(kSin);
      const BufferRef input = upload({1, 2});
      queue().drain();
      watch.on_execute = [&] { return watch.executes().size() <= 2 ? "no memory today" : nullptr; };
      const BufferRef failed = run(neg, input), after = run(neg, failed), on_host = run(sin, after), other = run(neg, input);
      for (const BufferRef& buffer : {failed, after, on_host, failed})
        EXPECT_THAT(download_error(buffer), HasSubstr("aten::neg: no memory today; the program's values hold"));
      EXPECT_EQ(error_of([&] { download(on_host); }).code(), Code::kResourceExhausted);
      EXPECT_THAT(download(other), ElementsAre(-1, -2));
      EXPECT_THAT(watch.executes(), SizeIs(3));  // tried twice; what read the failed value never ran
      queue().drain();
    }
    watch.on_execute = nullptr;
  }
}

TEST_F(QueueErrorsTest, ADeviceWithoutMemoryIsAskedAgainWhenItIsIdle) {
  watch.code = LTC_RESOURCE_EXHAUSTED;
  for (const char* plugin : {"watched", "watched_async"}) {
    open(plugin);
    watch.seen.clear();
    {
      const ProgramRef neg = program(kNeg);
      const BufferRef first = run(neg, upload({1, 2}));
      watch.on_execute = [&] { return watch.executes().size() == 2 ? "no memory yet" : nullptr; };
      EXPECT_THAT(download(run(neg, first)), ElementsAre(1, 2));
      EXPECT_THAT(watch.executes(), SizeIs(3));
      queue().drain();
      watch.on_execute = nullptr;
    }
  }
}

TEST_F(QueueErrorsTest, AnErrorOfNoMemorySaysWhoHasIt) {
  open("watched");
  watch.code = LTC_RESOURCE_EXHAUSTED;
  const BufferRef held = upload(Floats(1000, 1.f)), other = upload({1, 2});
  download(held), download(other);
  for (const bool is_transfer : {true, false}) {
    (is_transfer ? watch.on_transfer : watch.on_execute) = [] { return "no memory today"; };
    const BufferRef made = is_transfer ? upload({3, 4}) : run(program(kNeg), other);
    const std::string message = download_error(made);
    EXPECT_THAT(message,
                HasSubstr("no memory today; the program's values hold 4.0 kB of the device, which says it has in use 4.0 kB"));
    EXPECT_THAT(message, HasSubstr("most: 1 x f32[1000] 4.0 kB"));
    watch.on_transfer = watch.on_execute = nullptr;
  }
}

// The cache then compiles a program from the disk again.
TEST_F(QueueErrorsTest, AProgramKnowsThatItsFirstRunHasFailed) {
  open("watched");
  bool fails = true;
  watch.on_execute = [&] { return fails ? "not this time" : nullptr; };
  const ProgramRef neg = program(kNeg), twice = program(kDouble);
  const BufferRef input = upload({1, 2});
  run(neg, input);
  queue().drain();
  EXPECT_TRUE(neg->failed_at_first);
  fails = false;
  run(twice, input);
  queue().drain();
  fails = true;
  run(twice, input);
  queue().drain();
  EXPECT_FALSE(twice->failed_at_first);
  watch.on_execute = nullptr;
}

TEST_F(QueueErrorsTest, AnErrorOfTheEventReachesWhoeverReadsTheValue) {
  open("test_fails");  // every second run, through its event
  const ProgramRef neg = program(kNeg), sin = program(kSin);
  const BufferRef input = upload({1, 2});
  const BufferRef good = run(neg, input), failed = run(neg, input);
  const BufferRef after = run(neg, failed), on_host = run(sin, after), last = run(neg, after);
  for (const BufferRef& buffer : {failed, after, on_host, last}) {
    EXPECT_EQ(download_error(buffer), "aten::neg: every second run fails [test_fails]");
  }
  EXPECT_THAT(download(good), ElementsAre(-1, -2));
  EXPECT_THAT(download(input), ElementsAre(1, 2));
  queue().drain();
}

TEST_F(QueueErrorsTest, AnErrorThatIsKnownByNowReachesLaterWork) {
  open("test_fails");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  run(neg, input);
  const BufferRef failed = run(neg, input);
  queue().drain();  // the event has been waited for and is gone
  const BufferRef after = run(neg, failed);
  queue().drain();
  const BufferRef other = run(neg, input);  // the third run of the device
  EXPECT_EQ(download_error(after), "aten::neg: every second run fails [test_fails]");
  EXPECT_EQ(download_error(failed), "aten::neg: every second run fails [test_fails]");
  EXPECT_THAT(download(other), ElementsAre(-1, -2));
}

TEST_F(QueueErrorsTest, WorkThatReadsAFailedValueIsWaitedForToo) {
  const Unvalidated alone;
  open("watched_async");
  const BufferRef buffer = upload({1, 2});
  download(buffer);  // the queue is idle from here on
  const Floats values = {3, 4};
  const auto send = [&] {
    ltc_transfer_args args{};
    args.struct_size = LTC_SIZE_TO(ltc_transfer_args, source_offset_bytes);
    args.direction = LTC_TO_DEVICE;
    args.buffer = buffer->handle;
    args.size_bytes = values.size() * sizeof(float);
    args.from = values.data();
    return queue().device().transfer(args);
  };
  ltc_event *const first = send(), *const second = send();
  std::vector<ltc_event*> waited_for;
  watch.on_wait = [&](ltc_event* event, uint64_t) -> const char* {
    waited_for.push_back(event);
    return event == first ? "the link is down" : nullptr;
  };
  {
    Completion reading(queue(), second, {{std::make_shared<Completion>(queue(), first)}}, nullptr, true);
    for (int i = 0; i < 2; ++i) EXPECT_THAT(message_of([&] { reading.wait(); }), HasSubstr("the link is down"));
  }
  EXPECT_THAT(waited_for, ElementsAre(first, second));
  watch.on_wait = nullptr;
}

TEST_F(QueueErrorsTest, OutputsThatAreGoodAllTheSameAreRead) {
  open("watched_async");
  const ProgramRef both = program("graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) %2: f32[2] = aten::relu(%0) return %1, %2 }");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  download(input);
  watch.good = {1, 0};
  watch.on_wait = [](ltc_event*, uint64_t) { return "a half of it failed"; };
  const std::vector<BufferRef> outputs = run_all(both, {input});
  EXPECT_THAT(download_error(outputs[1]), HasSubstr("a half of it failed"));
  watch.on_wait = nullptr;
  EXPECT_THAT(download(outputs[0]), ElementsAre(-1, -2));
  EXPECT_THAT(download(run(neg, outputs[0])), ElementsAre(1, 2)) << "nor is what depends on a good output lost";
  EXPECT_THAT(download_error(run(neg, outputs[1])), HasSubstr("a half of it failed"));
}

TEST_F(QueueErrorsTest, AWaitThatFailsLeavesTheMemoryToTheDevice) {
  open("watched_async");
  const BufferRef buffer = upload({1, 2});
  download(buffer);
  int waits = 0;
  watch.waits_fail = true;
  watch.on_wait = [&](ltc_event*, uint64_t) { return ++waits < 4 ? "the network is down" : nullptr; };
  const std::shared_ptr<void> memory(new float[2]{3, 4}, [](void* gone) { delete[] static_cast<float*>(gone); });
  const std::weak_ptr<void> alive = memory;
  {
    auto args = host::sized<ltc_transfer_args>();
    args.direction = LTC_TO_DEVICE;
    args.buffer = buffer->handle;
    args.size_bytes = 8;
    args.from = memory.get();
    Completion copy(queue(), queue().device().transfer(args), {f32({2}), memory});
    EXPECT_THAT(message_of([&] { copy.wait(); }), HasSubstr("the network is down"));
    EXPECT_FALSE(copy.is_over()) << "nothing is known of the work";
    EXPECT_EQ(waits, 2);
  }
  EXPECT_EQ(waits, 4) << "the destructor waits again until a wait succeeds";
  EXPECT_EQ(alive.use_count(), 1) << "given back once the copy was over";
  watch.on_wait = nullptr;
  EXPECT_EQ(download(buffer), (Floats{3, 4}));
}

TEST_F(QueueErrorsTest, AnErrorReachesABufferOfAnotherSize) {
  open("test_fails");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  run(neg, input);
  const BufferRef resized = queue().resized(run(neg, input), f32({4}));
  EXPECT_EQ(download_error(resized), "aten::neg: every second run fails [test_fails]");
  EXPECT_EQ(download_error(queue().resized(resized, f32({1}))), "aten::neg: every second run fails [test_fails]");
}

TEST_F(QueueErrorsTest, AThrowingPluginIsAnErrorOfTheValue) {
  const Unvalidated alone;
  for (const char* plugin : {"watched", "watched_async"}) {
    open(plugin);
    {
      const ProgramRef neg = program(kNeg);
      const BufferRef input = upload({1, 2});
      queue().drain();
      watch.on_execute = []() -> const char* { throw std::runtime_error("no luck today"); };
      const BufferRef output = run(neg, input);
      EXPECT_EQ(download_error(output), cat("aten::neg: the plugin threw from execute: no luck today [", plugin, "]"));
      watch.on_execute = nullptr;
      EXPECT_THAT(download(run(neg, input)), ElementsAre(-1, -2));
    }
  }
}

TEST_F(QueueErrorsTest, APluginThatThrowsFromItsClaimsFailsToCompile) {
  const Unvalidated alone;
  open("test_throws");
  EXPECT_EQ(message_of([&] { program(kNeg); }), "[test_throws] the plugin threw from claims: not a std::exception");
  EXPECT_THAT(download(upload({1, 2})), ElementsAre(1, 2));
}

TEST_F(QueueErrorsTest, WhatAThrowingPluginConsumedIsNotFreedTwice) {
  const Unvalidated alone;
  open("watched");
  const ProgramRef inplace = program("graph(%0: f32[2] -> 0) { %1: f32[2] = aten::neg(%0) return %1 }");
  BufferRef input = upload({1, 2});
  queue().drain();
  watch.after_execute = [] { throw std::runtime_error("too late"); };
  const BufferRef output = run(inplace, std::move(input));
  EXPECT_THAT(download_error(output), HasSubstr("too late"));
  EXPECT_THAT(watch.last_donated(), ElementsAre(1));
}

TEST_F(QueueErrorsTest, ARefusedRunConsumesNothing) {
  open("watched");
  const ProgramRef inplace = program("graph(%0: f32[2] -> 0) { %1: f32[2] = aten::neg(%0) return %1 }");
  BufferRef input = upload({1, 2});
  queue().drain();
  watch.on_execute = [] { return "no memory today"; };
  EXPECT_THAT(download_error(run(inplace, std::move(input))), HasSubstr("no memory today"));
  queue().drain();
  EXPECT_EQ(queue().device().memory_stats().in_use_bytes, 0u);
}

TEST_P(AnyQueueErrorsTest, AnErrorOfTheHostReachesWhoeverReadsTheValue) {
  open(GetParam());
  const ProgramRef cos = program("graph(%0: f32[2]) { %1: f32[2] = aten::cos(%0) %2: f32[2] = aten::neg(%1) return %2 }");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2}), failed = run(cos, input), after = run(neg, failed), other = run(neg, input);
  EXPECT_EQ(download_error(failed), "cos has no value here");
  EXPECT_EQ(download_error(after), "cos has no value here");
  EXPECT_THAT(download(other), ElementsAre(-1, -2));
}

TEST_F(QueueErrorsTest, WithoutAHostRunnerAHostStepFails) {
  set_host_runner(nullptr);
  open("test");
  const BufferRef output = run(program(kSin), upload({1, 2}));
  EXPECT_EQ(error_of([&] { download(output); }).code(), Code::kUnsupported);
}

TEST_F(QueueErrorsTest, AHostRunnerThatForgetsAnOutputIsAnError) {
  set_host_runner([](const Graph&, std::span<const HostValue>, std::span<const Scalar>) { return std::vector<HostValue>(); });
  open("test");
  const BufferRef output = run(program(kSin), upload({1, 2}));
  EXPECT_EQ(download_error(output), "the host runner gave 0 outputs for 1");
}

TEST_F(QueueErrorsTest, AFailedTransferReachesWhoeverReadsTheValue) {
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

TEST_F(QueueErrorsTest, ABufferThatThePluginCannotHold) {
  open("test");
  const BufferRef buffer = queue().upload(allocate_host_value(intern_contiguous(DType::kI32, std::vector<int64_t>{2})));
  EXPECT_EQ(error_of([&] { download(buffer); }).code(), Code::kUnsupported);
}

TEST_F(QueueErrorsTest, DoubleIsKeptAsSingleByADeviceWithoutIt) {
  open("test");
  HostValue value = allocate_host_value(intern_contiguous(DType::kF64, std::vector<int64_t>{2}));
  auto* numbers = static_cast<double*>(value.data.get());
  numbers[0] = 0.1, numbers[1] = -3;
  const BufferRef buffer = queue().upload(value);
  const int64_t uploaded = metrics::counter_value(metrics::kBytesToDevice);
  double received[2] = {};
  queue().download(buffer, received);
  EXPECT_THAT(received, ElementsAre(double{0.1f}, -3.0));
  EXPECT_EQ(metrics::counter_value(metrics::kBytesToDevice) - uploaded, 8);
}

}  // namespace
}  // namespace ltc
