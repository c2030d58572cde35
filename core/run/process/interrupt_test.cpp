#include "core/run/process/interrupt.h"

#include <thread>

#include "core/run/testing/queue_test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;

struct Interrupted : std::exception {};

// The next wait of any thread that takes a while throws, once.
std::atomic<bool> g_interrupt = false;

class InterruptTest : public QueueTest {
 protected:
  InterruptTest() {
    set_check_interrupt([] {
      if (g_interrupt.exchange(false)) throw Interrupted();
    });
  }
  ~InterruptTest() override { set_check_interrupt(nullptr); }

  template <typename Wait>
  static void expect_interrupted(Wait wait) {
    g_interrupt = true;
    EXPECT_THROW(wait(), Interrupted);
    EXPECT_FALSE(g_interrupt);
  }

  Gate gate_;
};

class InterruptedStepTest : public LazyTest {};

TEST_F(InterruptedStepTest, WhatWaitsForRoomIsStillRecorded) {
  Gate gate;
  watch.on_execute = [&]() -> const char* { return gate.wait(), nullptr; };
  open("watched");
  LazyStorage x(device());
  fill(x, {1, 2});
  const auto step = [&] {
    record(x, "aten::add.Tensor", {&x, &x});
    sync();
  };
  step(), step();
  set_check_interrupt([] { throw Interrupted(); });
  EXPECT_THROW(step(), Interrupted);
  EXPECT_THROW(sync(), Interrupted);
  set_check_interrupt(nullptr);
  gate.open();
  EXPECT_THAT(read(x), ElementsAre(8, 16));
}

TEST_F(InterruptTest, ADownloadGoesOnIntoMemoryThatIsKept) {
  watch.on_execute = [&]() -> const char* { return gate_.wait(), nullptr; };
  open("watched");
  const BufferRef output = run(program(kNeg), upload({1, 2}));
  auto memory = std::make_shared<Floats>(2);
  const std::weak_ptr<Floats> kept = memory;
  expect_interrupted([&] { queue().download(output, memory->data(), memory); });
  memory.reset();
  EXPECT_FALSE(kept.expired());
  gate_.open();
  queue().drain();
  EXPECT_TRUE(kept.expired());
  EXPECT_THAT(download(output), ElementsAre(-1, -2));
}

TEST_F(InterruptTest, WaitsForTheDeviceAreInterrupted) {
  open("test_slow", 8);
  const ProgramRef neg = program(kNeg);
  BufferRef value = upload({1, 2});
  const auto run_many = [&] {
    for (int i = 0; i < 8; ++i) value = run(neg, value);
  };
  run_many();
  expect_interrupted([&] { queue().drain(); });
  run_many();
  const auto memory = std::make_shared<Floats>(2);
  expect_interrupted([&] { queue().download(value, memory->data(), memory); });
  run_many();
  const auto fence = queue().add_fence();
  expect_interrupted([&] { fence->wait(); });
  EXPECT_THAT(download(value), ElementsAre(1, 2));
}

TEST_F(InterruptTest, ALockThatAnotherThreadHoldsIsWaitedForInSlices) {
  std::timed_mutex mutex;
  std::unique_lock lock(mutex);
  std::thread waiting([&] { expect_interrupted([&] { lock_in_slices(mutex); }); });
  waiting.join();
  lock.unlock();
  EXPECT_TRUE(lock_in_slices(mutex).owns_lock());
}

TEST_F(InterruptTest, AQueueThatRestedGoesOn) {
  for (const char* plugin : {"test", "test_async"}) {
    open(plugin);
    const ProgramRef neg = program(kNeg);
    const BufferRef first = run(neg, upload({1, 2}));
    queue().rest();
    queue().rest();
    EXPECT_THAT(download(run(neg, first)), ElementsAre(1, 2));
  }
}

}  // namespace
}  // namespace ltc
