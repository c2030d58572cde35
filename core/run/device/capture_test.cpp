#include "core/run/device/capture.h"

#include <thread>

#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const TypeId kF2 = f32({2});

class CaptureTest : public LazyTest {
 protected:
  CaptureTest() { open("test_async"); }

  // A function of storages whose one result is a new storage.
  template <typename Function>
  Captured capture(size_t arguments, Function function) {
    Capture capture(device());
    std::vector<std::unique_ptr<LazyStorage>> placeholders;
    std::vector<LazyStorage*> given;
    for (size_t i = 0; i < arguments; ++i) {
      given.push_back(placeholders.emplace_back(std::make_unique<LazyStorage>(device())).get());
      capture.add_argument(*given.back(), kF2);
    }
    LazyStorage result(device());
    function(given, result);
    LazyStorage* const results[] = {&result};
    return capture.finish(results);
  }

  Floats call(const Captured& captured, std::vector<LazyStorage*> arguments, std::vector<Scalar> scalars) {
    LazyStorage result(device());
    arguments.push_back(&result);
    device().call(captured, scalars, arguments);
    return read(result);
  }
};

TEST_F(CaptureTest, ACallRunsTheProgramOnItsArguments) {
  const Captured twice = capture(1, [&](auto& given, LazyStorage& result) {
    record(result, "aten::add.Tensor", {given[0], given[0]});
  });
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  fill(b, {10, 20});
  EXPECT_THAT(call(twice, {&a}, {}), ElementsAre(2, 4));
  EXPECT_THAT(call(twice, {&b}, {}), ElementsAre(20, 40));
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(metrics::counter_value(metrics::kOpsRecorded), 1);
  EXPECT_EQ(metrics::counter_value(metrics::kCapturedCalls), 2);
}

TEST_F(CaptureTest, SharesItsProgramWithWhatIsRecorded) {
  LazyStorage a(device()), sum(device());
  fill(a, {1, 2});
  record(sum, "aten::add.Tensor", {&a, &a});
  sync();
  capture(1, [&](auto& given, LazyStorage& result) { record(result, "aten::add.Tensor", {given[0], given[0]}); });
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(found(), 1);
}

TEST_F(CaptureTest, WritesItsArgumentsAndTakesOtherNumbers) {
  const Captured scaled = capture(1, [&](auto& given, LazyStorage& result) {
    scale(*given[0], 2);
    Recorder(device()).share(result, *given[0], kF2);
  });
  LazyStorage a(device());
  fill(a, {1, 2});
  EXPECT_THAT(call(scaled, {&a}, {{.f = 3}}), ElementsAre(3, 6));
  EXPECT_THAT(call(scaled, {&a}, {{.f = 10}}), ElementsAre(30, 60));
  EXPECT_THAT(read(a), ElementsAre(30, 60));
  EXPECT_EQ(compiled(), 1);
}

TEST_F(CaptureTest, AShortFunctionJoinsTheStepInWhichItsArgumentIsOnlyRecorded) {
  const Captured negated = capture(1, [&](auto& given, LazyStorage& result) { record(result, "aten::neg", {given[0]}); });
  for (const float value : {1.f, 5.f}) {
    LazyStorage a(device());
    fill(a, {value, 2});
    record(a, "aten::add.Tensor", {&a, &a});
    EXPECT_THAT(call(negated, {&a}, {}), ElementsAre(-2 * value, -4));
    EXPECT_THAT(read(a), ElementsAre(2 * value, 4));
  }
  EXPECT_EQ(metrics::counter_value(metrics::kCallBarrier), 0);
  EXPECT_EQ(compiled(), 2);  // the function, and the step that it is part of
}

TEST_F(CaptureTest, OneFunctionJoinsAStepAndTheNextEndsIt) {
  const Captured negated = capture(1, [&](auto& given, LazyStorage& result) { record(result, "aten::neg", {given[0]}); });
  LazyStorage a(device()), first(device());
  fill(a, {1, 2});
  record(a, "aten::add.Tensor", {&a, &a});
  LazyStorage* const storages[] = {&a, &first};
  device().call(negated, {}, storages);
  EXPECT_THAT(call(negated, {&first}, {}), ElementsAre(2, 4));
  EXPECT_EQ(metrics::counter_value(metrics::kCallBarrier), 1);
}

TEST_F(CaptureTest, ALongFunctionEndsTheStepInWhichItsArgumentIsOnlyRecorded) {
  const Captured negated = capture(1, [&](auto& given, LazyStorage& result) {
    for (int i = 0; i < 300; ++i) record(*given[0], "aten::neg", {given[0]});
    record(result, "aten::neg", {given[0]});
  });
  LazyStorage a(device());
  fill(a, {1, 2});
  record(a, "aten::add.Tensor", {&a, &a});
  EXPECT_THAT(call(negated, {&a}, {}), ElementsAre(-2, -4));
  EXPECT_EQ(metrics::counter_value(metrics::kCallBarrier), 1);
}

TEST_F(CaptureTest, WhatJoinsAStepWritesItsArgumentsAndTakesOtherNumbers) {
  const Captured scaled = capture(2, [&](auto& given, LazyStorage& result) {
    scale(*given[0], 2);
    record(result, "aten::add.Tensor", {given[0], given[1]});
    LazyStorage kept(device());
    Recorder(device()).share(kept, *given[0], kF2);
    Recorder(device()).share(*given[0], *given[1], kF2);
    Recorder(device()).share(*given[1], kept, kF2);
  });
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  fill(b, {10, 20});
  record(a, "aten::add.Tensor", {&a, &a});
  EXPECT_THAT(call(scaled, {&a, &b}, {{.f = 3}}), ElementsAre(16, 32));
  EXPECT_THAT(read(a), ElementsAre(10, 20));
  EXPECT_THAT(read(b), ElementsAre(6, 12));
  EXPECT_EQ(metrics::counter_value(metrics::kCallBarrier), 0);
}

TEST_F(CaptureTest, LeavesWhatOthersRecordAlone) {
  LazyStorage a(device()), other(device());
  fill(a, {1, 2});
  record(a, "aten::neg", {&a});
  capture(1, [&](auto& given, LazyStorage& result) {
    std::thread([&] {
      fill(other, {5, 6});
      record(other, "aten::add.Tensor", {&other, &a});
    }).join();
    record(result, "aten::neg", {given[0]});
  });
  EXPECT_THAT(read(other), ElementsAre(4, 4));
  EXPECT_THAT(read(a), ElementsAre(-1, -2));
}

TEST_F(CaptureTest, WhatIsNoArgumentIsRefused) {
  LazyStorage outside(device());
  fill(outside, {1, 2});
  const auto read_it = [&](auto&, LazyStorage& result) { record(result, "aten::neg", {&outside}); };
  const auto write_it = [&](auto& given, LazyStorage&) { record(outside, "aten::neg", {given[0]}); };
  const auto ask = [&](auto& given, LazyStorage&) { read(*given[0]); };
  const auto end_step = [&](auto&, LazyStorage&) { sync(); };
  EXPECT_THAT(message_of([&] { capture(1, read_it); }), HasSubstr("a tensor was read that is no argument"));
  EXPECT_THAT(message_of([&] { capture(1, write_it); }), HasSubstr("a tensor was written that is no argument"));
  EXPECT_THAT(message_of([&] { capture(1, ask); }), HasSubstr("a value was asked for"));
  EXPECT_THAT(message_of([&] { capture(1, end_step); }), HasSubstr("a barrier (MarkStep)"));
  EXPECT_EQ(t_capture, nullptr);
  EXPECT_THAT(read(outside), ElementsAre(1, 2));
}

TEST_F(CaptureTest, WhatIsMadeInsideIsNotTakenForAnArgumentThatWasOverwritten) {
  const Captured added = capture(2, [&](auto& given, LazyStorage& result) {
    fill(*given[0], {5, 6});  // what stood for the argument is gone, and its memory free for others
    LazyStorage made(device());
    fill(made, {7, 8});
    record(result, "aten::add.Tensor", {&made, given[1]});
  });
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  fill(b, {10, 20});
  EXPECT_THAT(call(added, {&a, &b}, {}), ElementsAre(17, 28));
  EXPECT_THAT(read(a), ElementsAre(5, 6));
}

TEST_F(CaptureTest, WhatEscapesHasNoValue) {
  LazyStorage kept(device());
  capture(1, [&](auto& given, LazyStorage& result) {
    record(kept, "aten::neg", {given[0]});
    record(result, "aten::neg", {&kept});
  });
  EXPECT_THAT(message_of([&] { read(kept); }), HasSubstr("has no value outside of it: return it"));
}

TEST_F(CaptureTest, APlaceholderIsForItsOwnThread) {
  std::string read_error, written_error, asked_error;
  LazyStorage kept(device());  // escapes
  const auto use_elsewhere = [&](auto& given, LazyStorage& result) {
    Recorder(device()).share(kept, *given[0], kF2);
    std::thread([&] {
      LazyStorage other(device());
      read_error = message_of([&] { record(other, "aten::neg", {given[0]}); });
      written_error = message_of([&] { fill(*given[0], {7, 8}); });
      asked_error = message_of([&] { read(*given[0]); });
    }).join();
    record(result, "aten::neg", {given[0]});
  };
  const Captured negated = capture(1, use_elsewhere);
  for (const std::string& error : {read_error, written_error, asked_error}) EXPECT_EQ(error, kIsPlaceholder);
  LazyStorage a(device());
  fill(a, {1, 2});
  EXPECT_THAT(call(negated, {&a}, {}), ElementsAre(-1, -2));
  EXPECT_EQ(message_of([&] { record(a, "aten::neg", {&kept}); }), kIsPlaceholder);
  EXPECT_EQ(message_of([&] { call(negated, {&kept}, {}); }), kIsPlaceholder);
  EXPECT_EQ(message_of([&] { read(kept); }), kIsPlaceholder);
}

TEST_F(CaptureTest, AResultThatItHasNotComputedIsRefused) {
  LazyStorage computed(device()), recorded(device());
  fill(computed, {1, 2});
  record(recorded, "aten::neg", {&computed});
  const auto overwrite = [&](auto& given, LazyStorage& result) {
    record(result, "aten::neg", {given[0]});
    std::thread([&] { Recorder(device()).share(result, computed, kF2); }).join();
  };
  EXPECT_THAT(message_of([&] { capture(1, overwrite); }), HasSubstr("another thread's"));
  for (LazyStorage* outside : {&computed, &recorded}) {
    Capture capture(device());
    LazyStorage* const results[] = {outside};
    EXPECT_THAT(message_of([&] { capture.finish(results); }), HasSubstr("a tensor from outside"));
  }
  EXPECT_THAT(read(recorded), ElementsAre(-1, -2));
}

TEST_F(CaptureTest, ThreadsCallOneFunctionAndCaptureOthers) {
  const Captured scaled = capture(1, [&](auto& given, LazyStorage& result) {
    record(result, "aten::add.Tensor", {given[0], given[0]});
    scale(result, 2);
  });
  LazyStorage shared(device());
  fill(shared, {1, 2});
  std::vector<Floats> found(8), own(8);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Captured negated = capture(1, [&](auto& given, LazyStorage& result) { record(result, "aten::neg", {given[0]}); });
      LazyStorage mine(device());
      fill(mine, {static_cast<float>(t), 1});
      record(mine, "aten::add.Tensor", {&mine, &mine});
      for (int step = 0; step < 10; ++step) {
        own[t] = call(negated, {&mine}, {});
        found[t] = call(scaled, {&shared}, {{.f = static_cast<double>(t)}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 8; ++t) {
    const auto number = static_cast<float>(t);
    EXPECT_THAT(own[t], ElementsAre(-2 * number, -2));
    EXPECT_THAT(found[t], ElementsAre(2 * number, 4 * number));
  }
}

}  // namespace
}  // namespace ltc
