// Programs that are compiled in the background: the host computes their steps meanwhile.
#include <cstdlib>
#include <thread>

#include "core/base/env.h"
#include "core/report/fallback_policy.h"
#include "core/run/device/capture.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

int64_t in_background() { return metrics::counter_value(metrics::kBackgroundCompile); }
int64_t on_host() { return metrics::counter_value(metrics::kInterimRuns); }

template <typename Done>
void wait_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

class BackgroundCompileTest : public LocatedTest {
 protected:
  ~BackgroundCompileTest() override {
    unsetenv(env::kBackgroundCompile.name);
    unsetenv(env::kFallback.name);
    allow_compiles(SIZE_MAX);
    device().stop();
  }

  void open(const std::string& plugin = "watched") {
    setenv(env::kBackgroundCompile.name, "1", 1);
    LocatedTest::open(plugin);
  }
  // In other threads than this one, each compile waits until so many are allowed.
  void open_gated() {
    watch.on_compile = [this, here = std::this_thread::get_id()]() -> const char* {
      const size_t number = compiles();
      while (std::this_thread::get_id() != here && number > allowed_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return nullptr;
    };
    open();
  }
  void allow_compiles(size_t count) { allowed_ = count; }
  void step(int64_t n = 2) { EXPECT_THAT(step_of_size(n), Each(3.f)); }

  size_t compiles() {
    std::lock_guard lock(watch.mutex);
    return watch.efforts.size();
  }
  size_t on_device() { return watch.executes().size(); }

 private:
  std::atomic<size_t> allowed_ = 0;
};

TEST_F(BackgroundCompileTest, TheHostComputesStepsUntilTheProgramIsThere) {
  open_gated();
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(on_host(), 3);
  EXPECT_EQ(on_device(), 0u);
  EXPECT_EQ(compiled(), 0);
  allow_compiles(SIZE_MAX);
  wait_until([] { return in_background() == 1; });
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(on_host(), 3);
  EXPECT_EQ(on_device(), 3u);
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(found(), 5);
}

TEST_F(BackgroundCompileTest, TheAccountOfFallbacksIsOfWhatThePluginDoesNotRun) {
  open_gated();
  LazyStorage x(device());
  fill(x, {1, 2});
  const auto sine_of_negative = [&] {
    record(x, "aten::neg", {&x});
    record(x, "aten::sin", {&x});  // the host's own
    sync();
    return read(x);
  };
  EXPECT_THAT(sine_of_negative(), ElementsAre(99, 98));
  EXPECT_THAT(fallbacks(), IsEmpty());
  EXPECT_EQ(metrics::counter_value(metrics::kFallbackBytes), 0);
  EXPECT_EQ(metrics::counter_value(metrics::kHostStepOps), 2);
  allow_compiles(SIZE_MAX);
  wait_until([] { return in_background() == 1; });
  EXPECT_THAT(sine_of_negative(), ElementsAre(1, 2));
  ASSERT_EQ(fallbacks().size(), 1u);
  EXPECT_EQ(fallbacks()[0].op, "aten::sin");
  EXPECT_THAT(fallbacks()[0].reason, HasSubstr("does not claim it"));
}

TEST_F(BackgroundCompileTest, WithoutTheSettingTheStepIsCompiledAtOnce) {
  LocatedTest::open("watched");
  step();
  EXPECT_EQ(on_device(), 1u);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(in_background() + on_host(), 0);
}

TEST_F(BackgroundCompileTest, SoItIsWhereTheHostMayNotCompute) {
  setenv(env::kFallback.name, "error", 1);
  open();
  step();
  EXPECT_EQ(on_device(), 1u);
  EXPECT_EQ(in_background() + on_host(), 0);
}

TEST_F(BackgroundCompileTest, SoItIsWhereAThreadWouldKeepTheOthersOut) {
  watch.one_call_at_a_time = true;
  open();
  step();
  EXPECT_EQ(on_device(), 1u);
  EXPECT_EQ(in_background() + on_host(), 0);
}

TEST_F(BackgroundCompileTest, SoItIsWithoutCompute) {
  open("test_memory");
  step();
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(in_background() + on_host(), 0);
}

TEST_F(BackgroundCompileTest, OfManySizesTwoAreCompiledInTheBackgroundAndTheOthersAtOnce) {
  open("test_symbolic");
  for (const int64_t n : {8, 16}) {
    const int64_t before = in_background();
    step(n);
    wait_until([&] { return in_background() == before + 1; });
    step(n);
  }
  EXPECT_EQ(metrics::counter_value(metrics::kSymbolicCompile), 1);
  const int64_t meanwhile = on_host();
  for (const int64_t n : {4, 3, 1000}) step(n);
  EXPECT_EQ(on_host(), meanwhile);
  EXPECT_EQ(in_background(), 2);
  EXPECT_EQ(metrics::counter_value(metrics::kSymbolicReuse), 3);
}

TEST_F(BackgroundCompileTest, AFailureIsToldByALaterStep) {
  watch.on_compile = []() -> const char* { return "no such luck"; };
  open();
  step();
  std::string told;
  wait_until([&] {
    try {
      step();
    } catch (const Error& error) {
      told = error.what();
    }
    return !told.empty();
  });
  EXPECT_THAT(told, HasSubstr("no such luck"));
  EXPECT_GE(compiles(), 2u);
  EXPECT_EQ(compiled(), 0);
  device().wait();
  watch.on_compile = nullptr;
  const size_t before = on_device();
  step();
  EXPECT_EQ(on_device(), before + 1);
  EXPECT_EQ(compiled(), 1);
  EXPECT_EQ(in_background(), 0);
}

TEST_F(BackgroundCompileTest, WithoutMemoryItIsTriedOnceMoreAsEver) {
  watch.code = LTC_RESOURCE_EXHAUSTED;
  watch.on_compile = [this]() -> const char* { return compiles() <= 2 ? "full" : nullptr; };
  open();
  wait_until([&] {
    step();
    return compiled() == 1;
  });
  EXPECT_EQ(compiles(), 3u);
  EXPECT_EQ(in_background(), 0);
}

TEST_F(BackgroundCompileTest, ACapturedFunctionIsCompiledAtOnce) {
  open_gated();
  LazyStorage placeholder(device()), result(device()), x(device());
  Capture capture(device());
  capture.add_argument(placeholder, f32({2}));
  record(result, "aten::neg", {&placeholder});
  LazyStorage* const results[] = {&result};
  const Captured negate = capture.finish(results);
  fill(x, {1, 2});
  LazyStorage* const storages[] = {&x, &result};
  device().call(negate, {}, storages);
  EXPECT_THAT(read(result), ElementsAre(-1, -2));
  EXPECT_EQ(on_device(), 1u);
  EXPECT_EQ(in_background() + on_host(), 0);
}

TEST_F(BackgroundCompileTest, AStepWhoseFirstValuesAreBadFailsAndTheNextOneDoesNot) {
  open_gated();
  LazyStorage x(device());
  fill(x, {1, 2});
  record(x, "aten::cos", {&x});
  sync();
  EXPECT_THAT(read_error(x), HasSubstr("cos has no value here"));
  allow_compiles(SIZE_MAX);
  step();
}

TEST_F(BackgroundCompileTest, ALostDevicesProgramsAreForgotten) {
  watch.code = LTC_DEVICE_LOST;
  open();
  wait_until([&] {
    step();
    return on_device() == 1;
  });
  watch.on_execute = [this]() -> const char* { return on_device() == 2 ? "the cable was pulled" : nullptr; };
  EXPECT_THAT(message_of([&] { step_of_size(2); }), HasSubstr("the cable was pulled"));
  const int64_t before = on_host();
  step();
  EXPECT_GE(on_host(), before + 1);
  wait_until([&] {
    step();
    return in_background() == 2;
  });
  EXPECT_EQ(device().queue().device().generation(), 2u);
}

TEST_F(BackgroundCompileTest, TheEndWaitsForOneCompileAndDropsTheOthers) {
  open_gated();
  for (int64_t n = 2; n < 8; ++n) step(n);
  wait_until([&] { return compiles() == 1; });
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    allow_compiles(SIZE_MAX);
  });
  device().stop();
  opens.join();
  EXPECT_EQ(compiles(), 1u);
  EXPECT_EQ(in_background(), 1);
}

TEST_F(BackgroundCompileTest, AfterARestItGoesOn) {
  open_gated();
  for (int64_t n = 2; n < 5; ++n) step(n);
  allow_compiles(SIZE_MAX);
  device().rest();
  wait_until([&] {
    for (int64_t n = 2; n < 5; ++n) step(n);
    return in_background() == 3;
  });
}

// ---- the compiler alone

class BackgroundCompilerTest : public BackgroundCompileTest {
 protected:
  BackgroundCompilerTest() { open_gated(); }
  ~BackgroundCompilerTest() override { allow_compiles(SIZE_MAX); }

  auto job(int64_t size) {
    const std::string type = cat("f32[", size, "]");
    return BackgroundCompiler::job(parse(cat("graph(%0: ", type, ") { %1: ", type, " = aten::neg(%0) return %1 }")),
                                   device().queue().device());
  }
  // From now on the compiler is busy with the program of this job.
  auto begin() {
    auto first = job(1);
    EXPECT_TRUE(compiler_.ask(first).is_pending);
    wait_until([&] { return compiles() == 1; });
    return first;
  }
  bool is_there(const std::shared_ptr<BackgroundJob>& job) { return compiler_.ask(job).program != nullptr; }

  BackgroundCompiler compiler_;
};

TEST_F(BackgroundCompilerTest, AJobThatWaitsIsTakenBackAndOneThatRunsIsWaitedFor) {
  const auto running = begin(), waiting = job(2);
  EXPECT_TRUE(compiler_.ask(waiting).is_pending);
  const auto taken_back = compiler_.wait(waiting);
  EXPECT_FALSE(taken_back.is_pending || taken_back.program);
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    allow_compiles(SIZE_MAX);
  });
  EXPECT_NE(compiler_.wait(running).program, nullptr);
  opens.join();
  wait_until([&] { return is_there(waiting); });  // asked for once more
}

TEST_F(BackgroundCompilerTest, WhatIsAskedForMostOftenComesFirst) {
  const auto running = begin();
  std::vector<std::shared_ptr<BackgroundJob>> jobs;
  for (int64_t i = 0; i < 3; ++i) compiler_.ask(jobs.emplace_back(job(2 + i)));
  compiler_.ask(jobs[1]), compiler_.ask(jobs[1]), compiler_.ask(jobs[2]);
  allow_compiles(2);
  wait_until([&] { return compiles() == 3; });
  EXPECT_TRUE(is_there(jobs[1]));
  allow_compiles(3);
  wait_until([&] { return compiles() == 4; });
  EXPECT_TRUE(is_there(jobs[2]));
  EXPECT_FALSE(is_there(jobs[0]));
}

TEST_F(BackgroundCompilerTest, WhatNobodyHoldsIsNotCompiled) {
  const auto running = begin();
  compiler_.ask(job(2));
  const auto last = job(3);
  compiler_.ask(last);
  allow_compiles(SIZE_MAX);
  wait_until([&] { return is_there(last); });
  EXPECT_EQ(compiles(), 2u);
}

TEST_F(BackgroundCompilerTest, TooManyWaitUntilTheyAreAskedForAgain) {
  const auto running = begin();
  std::vector<std::shared_ptr<BackgroundJob>> jobs;
  for (int64_t i = 0; i < 100; ++i) EXPECT_TRUE(compiler_.ask(jobs.emplace_back(job(2 + i))).is_pending);
  allow_compiles(SIZE_MAX);
  wait_until([&] { return compiles() == 65; });
  wait_until([&] { return std::ranges::all_of(jobs, [&](const auto& one) { return is_there(one); }); });
  EXPECT_EQ(compiles(), 101u);
}

TEST_F(BackgroundCompilerTest, AfterItsEndTheCallerCompiles) {
  const auto running = begin(), waiting = job(2);
  compiler_.ask(waiting);
  allow_compiles(SIZE_MAX);
  compiler_.stop();
  EXPECT_TRUE(is_there(running));
  const auto answer = compiler_.ask(waiting);
  EXPECT_FALSE(answer.is_pending || answer.program);
}

}  // namespace
}  // namespace ltc
