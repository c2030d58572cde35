// The queue's duties towards a plugin, by ltc/plugin.h.
#include <atomic>
#include <thread>

#include "core/run/testing/queue_test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class QueueContractTest : public QueueTest {};

TEST_F(QueueContractTest, SubmitsOfADeviceComeOneAtATime) {
  for (const char* plugin : {"watched", "watched_async"}) {
    open(plugin);
    {
      const ProgramRef neg = program(kNeg);
      std::atomic<int> inside{0}, most{0}, calls{0};
      const auto submit = [&]() -> const char* {
        const int now = ++inside;
        if (now > most) most = now;
        ++calls;
        std::this_thread::yield();
        --inside;
        return nullptr;
      };
      watch.on_execute = watch.on_transfer = submit;
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
          for (int k = 0; k < 10; ++k) {
            ltc::Run one{neg, {upload({1, 2})}, {}, {std::make_shared<Buffer>(queue(), neg->graph.types[1])}, 1};
            const BufferRef output = one.outputs[0];
            queue().execute(std::move(one));
            EXPECT_THAT(download(output), ElementsAre(-1, -2));
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      queue().drain();
      watch.on_execute = watch.on_transfer = nullptr;
      EXPECT_EQ(most, 1);
      EXPECT_GE(calls, 4 * 10 * 3);
    }
  }
}

// The error of the first run is known by its event alone.
TEST_F(QueueContractTest, ARunWithoutAnEventSaysNothingOfEarlierRuns) {
  open("watched_async");
  const ProgramRef neg = program(kNeg);
  const BufferRef input = upload({1, 2});
  download(input);
  queue().drain();
  watch.on_execute = [&]() -> const char* {
    watch.completes_runs = watch.executes().size() == 2;
    return nullptr;
  };
  watch.on_wait = [](ltc_event*, uint64_t) { return "the first run failed"; };
  const BufferRef first = run(neg, input), second = run(neg, input);
  EXPECT_THAT(download_error(first), HasSubstr("the first run failed"));
  queue().drain();
  watch.on_execute = nullptr;
  watch.on_wait = nullptr;
  EXPECT_THAT(download(second), ElementsAre(-1, -2));
}

TEST_F(QueueContractTest, APartThatIsNotCopiedIsCopiedWithTheWhole) {
  open("watched");
  watch.code = LTC_UNSUPPORTED;
  const BufferRef buffer = upload({1, 2, 3});
  download(buffer);
  int transfers = 0;
  watch.on_transfer = [&] { return ++transfers == 1 ? "whole buffers only" : nullptr; };
  EXPECT_THAT(download(queue().resized(buffer, f32({5}))), ElementsAre(1, 2, 3, 0, 0));
  EXPECT_GE(transfers, 3);
  watch.on_transfer = nullptr;
}

TEST_F(QueueContractTest, AllOfOneStepHasOneRunId) {
  open("watched");
  const ProgramRef turns = program(kHostInTheMiddle);
  for (int step = 0; step < 2; ++step) {
    for (const BufferRef& output : run_all(turns, {upload({1, 2}), upload({3, 4})}, {2, 2})) download(output);
  }
  const auto executes = watch.executes();
  ASSERT_THAT(executes, SizeIs(4));
  EXPECT_EQ(executes[0].run_id, executes[1].run_id);
  EXPECT_EQ(executes[2].run_id, executes[3].run_id);
  EXPECT_NE(executes[0].run_id, executes[2].run_id);
}

}  // namespace
}  // namespace ltc
