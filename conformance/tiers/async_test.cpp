// The async tier: events, the order of the queue, and what may be destroyed while work is submitted. Only plugins with events.
#include <chrono>
#include <thread>

#include "conformance/kit/fixture.h"
#include "conformance/kit/heap.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

// Work that takes some milliseconds, so that what is submitted behind it is pending for real.
constexpr int64_t kBusyCount = 1 << 18;
std::string busy() {
  const std::string type = cat("f32[", kBusyCount, "]");
  std::string text = cat("graph(%0: ", type, ") {\n");
  for (int i = 1; i <= 4; ++i) text += cat("%", i, ": ", type, " = aten::neg(%", i - 1, ")\n");
  return text + "return %4 }";
}

class Async : public EventTest {
 protected:
  Buffer four() { return device().upload(Array::floats({1, 2, 3, 4})); }
  Floats read(const Buffer& buffer) { return floats(buffer, {4}); }
  Device::Run negate(const Executable& executable, const Buffer& input) { return device().submit({executable, {input.get()}}); }

  void keep_busy() { keep_busy(device()); }
  static void keep_busy(Device& device) {
    const Executable executable = device.build(busy());
    const Buffer input = device.buffer(DType::kF32, {kBusyCount});
    for (int i = 0; i < 3; ++i) (void)device.submit({executable, {input.get()}});
  }
};

TEST_F(Async, a_wait_without_a_limit_ends_with_the_work) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  ASSERT_OK(run.submitted);
  bool finished = false;
  EXPECT_OK(device().wait(run.done, LTC_FOREVER, finished));
  EXPECT_TRUE(finished);
  EXPECT_EQ(read(run.outputs[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Async, each_event_is_handed_out_once) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  const auto first = negate(executable, input), second = negate(executable, input);
  ASSERT_OK(first.submitted);
  ASSERT_OK(second.submitted);
  if (!first.done || !second.done) LTC_NOT_APPLICABLE("such a run is complete when execute returns");
  EXPECT_NE(first.done.get(), second.done.get()) << "the contract: a handle is handed out once; the caller destroys each";
}

TEST_F(Async, a_wait_of_no_time_only_asks) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  bool finished = false;
  int asked = 0;
  while (!finished) {
    const Failure failure = device().wait(run.done, 0, finished);
    ASSERT_OK(failure) << "time that runs out is not an error";
    ++asked;
    std::this_thread::yield();
  }
  EXPECT_GT(asked, 0);
}

TEST_F(Async, a_wait_that_runs_out_says_so_without_an_error) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  for (bool finished = false; !finished;) {
    finished = true;
    ASSERT_OK(device().wait(run.done, 50'000, finished));
  }
}

TEST_F(Async, finished_work_stays_finished) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  const auto run = negate(executable, input);
  ASSERT_OK(device().finish(run.done));
  for (int i = 0; i < 100; ++i) {
    bool finished = false;
    EXPECT_OK(device().wait(run.done, i % 2 ? 0 : LTC_FOREVER, finished));
    ASSERT_TRUE(finished) << "asked again, the " << i << "th time";
  }
}

TEST_F(Async, several_threads_wait_for_one_event) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        bool finished = false;
        if (!device().wait(run.done, LTC_FOREVER, finished) && finished) ++done;
      });
    }
  }
  EXPECT_EQ(done, 8);
}

TEST_F(Async, an_event_outlives_the_buffers_and_the_executable) {
  Executable executable = device().build(kNeg4);
  Buffer input = four();
  keep_busy();
  auto run = negate(executable, input);
  input.reset();
  executable.reset();
  run.outputs.clear();
  EXPECT_OK(device().finish(run.done));
}

TEST_F(Async, a_pending_event_may_be_forgotten) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  auto run = negate(executable, input);
  run.done.reset();
  EXPECT_EQ(read(run.outputs[0]), (Floats{-1, -2, -3, -4})) << "the work of a destroyed event goes on";
}

TEST_F(Async, the_end_of_later_work_is_the_end_of_earlier) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto first = negate(executable, input);
  const auto second = negate(executable, input);
  ASSERT_OK(device().finish(second.done));
  bool finished = false;
  EXPECT_OK(device().wait(first.done, 0, finished));
  EXPECT_TRUE(finished) << "a device is one in-order queue: what is submitted first runs first";
}

TEST_F(Async, runs_without_waiting_follow_each_other) {
  const Executable executable = device().build(kAdd4);
  const Buffer one = device().upload(Array::floats({1, 1, 1, 1}));
  Buffer value = four();
  for (int i = 0; i < 500; ++i) {
    auto run = device().submit({executable, {value.get(), one.get()}});
    ASSERT_OK(run.submitted);
    value = std::move(run.outputs[0]);
  }
  EXPECT_EQ(read(value), (Floats{501, 502, 503, 504})) << "outputs are usable at once: the queue orders them";
}

TEST_F(Async, an_input_may_be_destroyed_when_execute_returns) {
  const Executable executable = device().build(kNeg4);
  keep_busy();
  std::vector<Device::Run> runs;
  for (int i = 0; i < 50; ++i) {
    const Buffer input = device().upload(Array::floats({float(i), 0, 0, 0}));
    runs.push_back(negate(executable, input));
  }
  std::vector<Buffer> others;  // where the inputs were
  for (int i = 0; i < 50; ++i) others.push_back(device().upload(Array::floats({99, 99, 99, 99})));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(read(runs[size_t(i)].outputs[0])[0], -float(i));
}

TEST_F(Async, an_executable_may_be_destroyed_when_execute_returns) {
  const Buffer input = four();
  keep_busy();
  Executable executable = device().build(kNeg4);
  const auto run = negate(executable, input);
  executable.reset();
  EXPECT_EQ(read(run.outputs[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Async, arrays_of_a_run_may_change_when_execute_returns) {
  const Executable executable = device().build(kAdd4);
  const Buffer a = four(), b = device().upload(Array::floats({10, 20, 30, 40}));
  keep_busy();
  Device::RunArgs args{executable, {a.get(), b.get()}};
  const auto run = device().submit(args);
  args.inputs.assign(2, nullptr);
  EXPECT_EQ(read(run.outputs[0]), (Floats{11, 22, 33, 44}));
}

TEST_F(Async, outputs_may_be_destroyed_unread) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  for (int i = 0; i < 100; ++i) (void)negate(executable, input);
  EXPECT_EQ(read(negate(executable, input).outputs[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(Async, a_copy_waits_for_the_run_before_it) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  Floats data(4, 0);
  Event done;
  ASSERT_OK(device().transfer(from_device(run.outputs[0], data.data(), 16), done));
  ASSERT_OK(device().finish(done));
  EXPECT_EQ(data, (Floats{-1, -2, -3, -4}));
}

TEST_F(Async, a_run_waits_for_the_copy_before_it) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const Floats data{5, 6, 7, 8};
  Event copied;
  ASSERT_OK(device().transfer(to_device(input, data.data(), 16), copied));
  const auto run = negate(executable, input);
  EXPECT_EQ(read(run.outputs[0]), (Floats{-5, -6, -7, -8}));
  EXPECT_OK(device().finish(copied));
}

TEST_F(Async, a_copy_does_not_overtake_a_run_that_reads) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  const Floats data{5, 6, 7, 8};
  Event copied;
  ASSERT_OK(device().transfer(to_device(input, data.data(), 16), copied));
  EXPECT_EQ(read(run.outputs[0]), (Floats{-1, -2, -3, -4})) << "the run was submitted before the copy that overwrote its input";
  EXPECT_OK(device().finish(copied));
}

TEST_F(Async, a_finished_copy_writes_no_more) {
  const Buffer buffer = four();
  for (int i = 0; i < 200; ++i) {
    Floats data(4, -1);
    Event done;
    ASSERT_OK(device().transfer(from_device(buffer, data.data(), 16), done));
    ASSERT_OK(device().finish(done));
    data.assign(4, -2);
    std::this_thread::yield();
    ASSERT_EQ(data, Floats(4, -2)) << "a late write into host memory, after the event had signalled";
  }
}

TEST_F(Async, a_copy_without_an_event_has_read_its_memory) {
  const Executable executable = device().build(kNeg4);
  const Buffer buffer = device().buffer(DType::kF32, {4});
  keep_busy();
  Floats data{1, 2, 3, 4};
  Event copied;
  ASSERT_OK(device().transfer(to_device(buffer, data.data(), 16), copied));
  if (copied) {
    ASSERT_OK(device().finish(copied));
  }
  data.assign(4, 77);
  EXPECT_EQ(read(negate(executable, buffer).outputs[0]), (Floats{-1, -2, -3, -4}))
      << "host memory is the caller's again once the event is over, or at once where there is none";
}

TEST_F(Async, a_copy_without_an_event_has_written_its_memory) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  Floats data(4, 0);
  Event done;
  ASSERT_OK(device().transfer(from_device(run.outputs[0], data.data(), 16), done));
  if (done) {
    ASSERT_OK(device().finish(done));
  }
  EXPECT_EQ(data, (Floats{-1, -2, -3, -4}));
}

TEST_F(Async, work_goes_on_without_further_calls) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = negate(executable, input);
  Floats data(4, 0);
  Event done;
  ASSERT_OK(device().transfer(from_device(run.outputs[0], data.data(), 16), done));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (seen_now(data[3]) == 0 && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_NE(seen_now(data[3]), 0) << "nothing was read for 10 s: work that was submitted must not wait for another call";
  EXPECT_OK(device().finish(done));
}

TEST_F(Async, a_donation_is_safe_while_earlier_work_reads_the_input) {
  const Executable neg = device().build(kNeg4);
  const Executable add = device().build("graph(%0: f32[4] -> 0) { %1: f32[4] = aten::add.Tensor(%0, %0) {alpha=1} return %1 }");
  Buffer value = four();
  keep_busy();
  const auto before = negate(neg, value);
  const auto after = device().submit({add, {value.get()}, 1, {}, {1}});
  ASSERT_OK(after.submitted);
  (void)value.release();
  EXPECT_EQ(read(before.outputs[0]), (Floats{-1, -2, -3, -4})) << "the input was overwritten before the earlier run had read it";
  EXPECT_EQ(read(after.outputs[0]), (Floats{2, 4, 6, 8}));
}

TEST_F(Async, device_close_waits_for_the_queue) {
  LTC_NEEDS_SECOND_OPEN();
  Floats data(4, 0);
  {
    Device second(instance());
    const Executable executable = second.build(kNeg4);
    const Buffer input = second.upload(Array::floats({1, 2, 3, 4}));
    keep_busy(second);
    auto run = second.submit({executable, {input.get()}});
    Event copied;
    ASSERT_OK(second.transfer(from_device(run.outputs[0], data.data(), 16), copied));
  }
  EXPECT_EQ(data, (Floats{-1, -2, -3, -4})) << "device_close returned before the queue was empty";
}

TEST_F(Async, a_device_with_pending_work_closes) {
  LTC_NEEDS_SECOND_OPEN();
  for (int i = 0; i < 20; ++i) {
    Device second(instance());
    const Executable executable = second.build(kNeg4);
    const Buffer input = second.upload(Array::floats({1, 2, 3, 4}));
    for (int run = 0; run < 20; ++run) (void)second.submit({executable, {input.get()}});
  }
}

TEST_F(Async, two_devices_have_queues_of_their_own) {
  LTC_NEEDS_SECOND_OPEN();
  Device second(instance());
  const Executable executable = second.build(kNeg4);
  const Buffer input = second.upload(Array::floats({1, 2, 3, 4}));
  keep_busy();
  const auto run = second.submit({executable, {input.get()}});
  EXPECT_OK(second.finish(run.done));
  EXPECT_EQ(second.download(run.outputs[0], DType::kF32, {4}).values<float>(), (Floats{-1, -2, -3, -4}));
}

TEST_F(Async, events_leave_nothing_behind) {
  const Buffer buffer = four();
  Floats data(4);
  const auto growth = growth_per_time(2000, [&] {
    Event done;
    (void)device().transfer(from_device(buffer, data.data(), 16), done);
    (void)device().finish(done);
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each event";
}

TEST_F(Async, forgotten_events_leave_nothing_behind) {
  const Buffer buffer = four();
  Floats data(4);
  const auto growth = growth_per_time(1000, [&] {
    {
      Event done;
      (void)device().transfer(from_device(buffer, data.data(), 16), done);
    }
    (void)read(buffer);
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each event that was destroyed while pending";
}

}  // namespace
}  // namespace ltc::conformance
