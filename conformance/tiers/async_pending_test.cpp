// The async tier: calls that do not wait for the queue, and waits that say truly whether work is over. No check depends on a
// time.
#include <algorithm>
#include <chrono>
#include <functional>

#include "conformance/kit/fixture.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;
constexpr int kRounds = 30, kMostRuns = 100;
constexpr int64_t kElements = 1 << 20, kMostElements = 1 << 24;
constexpr std::chrono::milliseconds kLongEnough(50);
constexpr const char* kNeverPending = "such a run is complete when execute returns";

class AsyncPending : public EventTest {
 protected:
  // Long runs, and behind them a copy to host memory, which shows without a wait whether they are over.
  void submit_work() {
    if (!long_run_) {
      const std::string type = cat("f32[", elements_, "]");
      long_run_ = device().build(
          cat("graph(%0: ", type, ") { %1: ", type, " = aten::neg(%0) %2: ", type, " = aten::neg(%1) return %2 }"));
      long_input_ = device().buffer(DType::kF32, {elements_});
      four_ = device().upload(Array::floats({1, 2, 3, 4}));
    }
    for (int i = 0; i < runs_; ++i) done_ = std::move(device().submit({long_run_, {long_input_.get()}}).done);
    if (!shown_by_event_) {
      seen_.assign(4, 0);
      ASSERT_OK(device().transfer(from_device(four_, seen_.data(), 16), done_));
    }
  }
  // For a device that is quick: more runs, then longer ones in the same memory, whose submission takes less of the time.
  void submit_more() {
    const auto most_runs = static_cast<int>(kMostRuns * kElements / elements_);
    if (runs_ < most_runs) {
      runs_ = std::min(2 * runs_, most_runs);
    } else if (elements_ < kMostElements) {
      elements_ *= 4;
      runs_ /= 4;
      long_run_.reset();
    }
  }
  bool is_over() {
    if (!shown_by_event_) return seen_now(seen_[3]) != 0;
    bool finished = !done_;
    if (done_) {
      EXPECT_OK(device().wait(done_, 0, finished));
    }
    return finished;
  }

  // Each round submits work, then calls `submit`, then `call`. Passes once `call` returns before the work is over. Where copies
  // to the host wait, as those from a GPU to memory that is not pinned, the event of the last run shows whether the work is over.
  void expect_no_wait(const std::function<void()>& prepare, const std::function<void()>& submit,
                      const std::function<void()>& call) {
    int pending = 0;
    for (int round = 0; round < kRounds; ++round) {
      shown_by_event_ = shown_by_event_ || (round >= kRounds / 3 && pending == 0);
      prepare();
      const auto began = std::chrono::steady_clock::now();
      submit_work();
      if (HasFatalFailure()) return;
      submit();
      const bool was_over = is_over();
      call();
      const bool is_over_now = is_over();
      ASSERT_OK(device().finish(done_));
      pending += !was_over;
      if (!was_over && !is_over_now) return;
      if (std::chrono::steady_clock::now() - began < kLongEnough) submit_more();
    }
    if (pending < kRounds / 3) LTC_NOT_APPLICABLE(kNeverPending);
    FAIL() << "all of " << pending << " calls returned only when the work that was pending before them was over";
  }
  void expect_no_wait(const std::function<void()>& prepare, const std::function<void()>& call) {
    expect_no_wait(
        prepare, [] {}, call);
  }
  void expect_no_wait(const std::function<void()>& call) {
    expect_no_wait([] {}, call);
  }

  void TearDown() override {
    long_run_.reset(), long_input_.reset(), four_.reset(), done_.reset();
    EventTest::TearDown();
  }

  Executable long_run_;
  Buffer long_input_, four_;
  Floats seen_;
  Event done_;
  bool shown_by_event_ = false;
  int runs_ = 3;
  int64_t elements_ = kElements;
};

TEST_F(AsyncPending, a_wait_of_no_time_does_not_wait) {
  expect_no_wait([&] {
    bool finished = false;
    EXPECT_OK(device().wait(done_, 0, finished));
  });
}

TEST_F(AsyncPending, finished_is_said_of_work_that_is_over) {
  for (int round = 0; round < kRounds; ++round) {
    submit_work();
    if (HasFatalFailure()) return;
    if (!done_) LTC_NOT_APPLICABLE(kNeverPending);
    for (bool finished = false; !finished;) ASSERT_OK(device().wait(done_, round % 2 ? 50'000 : 0, finished));
    EXPECT_EQ(seen_, (Floats{1, 2, 3, 4})) << "event_wait said that the copy was over, and its memory was not yet written";
    ASSERT_OK(device().finish(done_));
  }
}

TEST_F(AsyncPending, buffer_create_does_not_wait) {
  std::vector<Buffer> made;
  expect_no_wait([&] { made.push_back(device().buffer(DType::kF32, {4})); });
}

TEST_F(AsyncPending, buffer_destroy_does_not_wait) {
  Buffer buffer;
  expect_no_wait([&] { buffer = device().upload(Array::floats({1, 2, 3, 4})); }, [&] { buffer.reset(); });
}

TEST_F(AsyncPending, buffer_destroy_does_not_wait_for_its_readers) {
  const Executable neg = device().build(kNeg4);
  Buffer buffer;
  Device::Run run;
  expect_no_wait(
      [&] {
        buffer = device().upload(Array::floats({1, 2, 3, 4}));
      },
      [&] {
        run = device().submit({neg, {buffer.get()}});
      },
      [&] { buffer.reset(); });
}

TEST_F(AsyncPending, executable_destroy_does_not_wait) {
  Executable executable;
  expect_no_wait([&] { executable = device().build(kNeg4); }, [&] { executable.reset(); });
}

TEST_F(AsyncPending, event_destroy_does_not_wait) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
  Device::Run run;
  expect_no_wait([] {}, [&] { run = device().submit({neg, {input.get()}}); }, [&] { run.done.reset(); });
}

TEST_F(AsyncPending, graphs_are_claimed_and_lowered_without_a_wait) {
  const Graph graph = parse(kNeg4);
  const AbiGraph abi(graph);
  expect_no_wait([&] {
    std::vector<uint32_t> clusters;
    EXPECT_OK(device().claims(*abi.get(), clusters));
    Program program;
    EXPECT_OK(device().lower(*abi.get(), program));
  });
}

TEST_F(AsyncPending, memory_stats_does_not_wait) {
  if (!api().memory_stats) LTC_NOT_APPLICABLE("the plugin has no memory_stats");
  expect_no_wait([&] { (void)device().memory_stats(); });
}

}  // namespace
}  // namespace ltc::conformance
