// The queue for synchronous libraries.
#include "ltc/queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "fake_host.h"

namespace ltc::plugin {
namespace {

struct Queue : testing::Test {
  FakeHost host;
  WorkQueue queue{&host.api};

  // Waits, ends the event, and returns its error.
  ltc_status finish(ltc_event* event) {
    bool finished = false;
    const ltc_status status = taken(WorkQueue::event_wait(event, LTC_FOREVER, &finished));
    EXPECT_TRUE(finished);
    WorkQueue::event_destroy(event);
    return status;
  }
};

TEST_F(Queue, work_runs_in_order) {
  std::vector<int> seen;
  for (int i = 0; i < 100; ++i) queue.post([&, i] { seen.push_back(i); });
  EXPECT_EQ(finish(queue.submit([&] { seen.push_back(100); })).code, 0u);
  ASSERT_EQ(seen.size(), 101u);
  for (int i = 0; i <= 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST_F(Queue, an_event_has_the_error_of_its_work) {
  ltc_event* const event = queue.submit([] { throw Failure(LTC_OUT_OF_RANGE, "index 7", 2); });
  ltc_event* const later = queue.submit([] {});
  for (int i = 0; i < 3; ++i) {
    bool finished = false;
    const ltc_status status = taken(WorkQueue::event_wait(event, LTC_FOREVER, &finished));
    EXPECT_TRUE(finished);
    EXPECT_EQ(status.code, LTC_OUT_OF_RANGE);
    EXPECT_EQ(status.node, 2u);
    EXPECT_EQ(status.message, "index 7");
  }
  WorkQueue::event_destroy(event);
  EXPECT_EQ(finish(later).code, 0u);
}

TEST_F(Queue, an_event_says_which_outputs_are_good) {
  const auto good = [&](WorkQueue::Work work, size_t count) {
    ltc_event* const event = queue.submit(std::move(work));
    bool finished = false;
    (void)taken(WorkQueue::event_wait(event, LTC_FOREVER, &finished));
    std::vector<uint8_t> outputs(count);
    EXPECT_EQ(WorkQueue::event_good_outputs(event, count, outputs.data()), nullptr);
    WorkQueue::event_destroy(event);
    return outputs;
  };
  const auto fail = [] { throw Failure({LTC_OUT_OF_RANGE, 0, "index 7", {0, 1, 1}}); };
  EXPECT_EQ(good(fail, 3), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(good(fail, 2), (std::vector<uint8_t>{0, 1}));
  EXPECT_EQ(good([] { throw Failure(LTC_INTERNAL, "all is lost"); }, 2), (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ(good([] {}, 2), (std::vector<uint8_t>{0, 0}));
}

TEST_F(Queue, a_wait_ends_with_its_time) {
  std::promise<void> go;
  ltc_event* const event = queue.submit([&] { go.get_future().wait(); });
  for (const uint64_t timeout : {0, 1000, 1'000'000}) {
    bool finished = true;
    EXPECT_EQ(WorkQueue::event_wait(event, timeout, &finished), nullptr);
    EXPECT_FALSE(finished);
  }
  go.set_value();
  EXPECT_EQ(finish(event).code, 0u);
}

TEST_F(Queue, many_may_wait) {
  std::promise<void> go;
  ltc_event* const event = queue.submit([&] { go.get_future().wait(); });
  std::atomic<int> finished_count{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        bool finished = false;
        (void)WorkQueue::event_wait(event, LTC_FOREVER, &finished);
        finished_count += finished;
      });
    }
    go.set_value();
  }
  EXPECT_EQ(finished_count, 8);
  WorkQueue::event_destroy(event);
}

TEST_F(Queue, a_pending_event_may_be_forgotten) {
  std::promise<void> go;
  WorkQueue::event_destroy(queue.submit([&] { go.get_future().wait(); }));
  go.set_value();
  EXPECT_EQ(finish(queue.submit([] {})).code, 0u);
}

TEST_F(Queue, work_of_nobody_logs_its_error) {
  queue.post([] { throw Failure(LTC_INTERNAL, "lost"); });
  EXPECT_EQ(finish(queue.submit([] {})).code, 0u);
  EXPECT_EQ(host.errors, std::vector<std::string>{"lost"});
}

TEST_F(Queue, a_run_throws_its_error) {
  bool ran = false;
  queue.run([&] { ran = true; });
  EXPECT_TRUE(ran);
  EXPECT_THROW(queue.run([] { throw Failure(LTC_OUT_OF_RANGE, "index"); }), Failure);
  EXPECT_TRUE(host.errors.empty());
}

TEST_F(Queue, what_work_holds_ends_before_its_event) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> left = held;
  ltc_event* const event = queue.submit([held] { (void)held; });
  held.reset();
  EXPECT_EQ(finish(event).code, 0u);
  EXPECT_TRUE(left.expired());
}

TEST(QueueEnd, runs_all_that_is_left) {
  FakeHost host;
  std::atomic<int> ran{0};
  {
    WorkQueue queue(&host.api);
    for (int i = 0; i < 50; ++i) queue.post([&] { std::this_thread::sleep_for(std::chrono::microseconds(100)), ++ran; });
  }
  EXPECT_EQ(ran, 50);
}

}  // namespace
}  // namespace ltc::plugin
