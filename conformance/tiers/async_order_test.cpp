// The async tier: the order of copies and runs, waits, and work that is pending while other calls come.
#include <algorithm>
#include <random>

#include "conformance/kit/fixture.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

class AsyncOrder : public EventTest {
 protected:
  Buffer four() { return device().upload(Array::floats({1, 2, 3, 4})); }
  Floats read(const Buffer& buffer) { return floats(buffer, {4}); }

  // Some runs of a million elements: what is submitted behind them is pending for real.
  void keep_busy() {
    if (!busy_) {
      busy_ = device().build(
          "graph(%0: f32[1048576]) { %1: f32[1048576] = aten::neg(%0) %2: f32[1048576] = aten::neg(%1) return %2 }");
      input_ = device().buffer(DType::kF32, {1 << 20});
    }
    for (int i = 0; i < 3; ++i) (void)device().submit({busy_, {input_.get()}});
  }
  void TearDown() override {
    busy_.reset();
    input_.reset();
    EventTest::TearDown();
  }
  bool is_over(const Event& event) {
    bool finished = false;
    EXPECT_OK(device().wait(event, 0, finished));
    return finished;
  }

  Executable busy_;
  Buffer input_;
};

TEST_F(AsyncOrder, the_end_of_a_copy_is_the_end_of_the_runs_before_it) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four(), other = four();
  keep_busy();
  const auto run = device().submit({neg, {input.get()}});
  const Floats data(4, 9);
  Event copied;
  ASSERT_OK(device().transfer(to_device(other, data.data(), 16), copied));
  if (!copied) LTC_NOT_APPLICABLE("such a run is complete when execute returns");
  ASSERT_OK(device().finish(copied));
  EXPECT_TRUE(is_over(run.done)) << "an event is over only when all that was submitted before it is";
}

TEST_F(AsyncOrder, the_end_of_a_run_is_the_end_of_the_copies_before_it) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  Floats data(4, 0);
  Event copied;
  ASSERT_OK(device().transfer(from_device(input, data.data(), 16), copied));
  const auto run = device().submit({neg, {input.get()}});
  ASSERT_OK(device().finish(run.done));
  EXPECT_EQ(data, (Floats{1, 2, 3, 4})) << "an event is over only when all that was submitted before it is";
  EXPECT_TRUE(is_over(copied));
}

TEST_F(AsyncOrder, events_are_waited_for_in_any_order) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  std::vector<Device::Run> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(device().submit({neg, {input.get()}}));
  std::ranges::shuffle(runs, std::mt19937(2));
  for (const Device::Run& run : runs) EXPECT_OK(device().finish(run.done));
}

TEST_F(AsyncOrder, events_are_destroyed_in_any_order) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  std::vector<Device::Run> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(device().submit({neg, {input.get()}}));
  std::ranges::shuffle(runs, std::mt19937(6));
  for (Device::Run& run : runs) run.done.reset();
  for (const Device::Run& run : runs) EXPECT_EQ(read(run.outputs[0]), (Floats{-1, -2, -3, -4}));
}

TEST_F(AsyncOrder, a_wait_of_centuries_is_no_wait_of_no_time) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  for (const uint64_t timeout : {LTC_FOREVER - 1, uint64_t{INT64_MAX}, uint64_t{INT64_MAX} + 1}) {
    keep_busy();
    const auto run = device().submit({neg, {input.get()}});
    bool finished = false;
    EXPECT_OK(device().wait(run.done, timeout, finished));
    EXPECT_TRUE(finished) << "a wait of " << timeout << " ns ended before the work";
  }
}

TEST_F(AsyncOrder, the_event_of_a_copy_may_be_forgotten) {
  const Buffer buffer = four();
  const Floats data{5, 6, 7, 8};
  keep_busy();
  Event copied;
  ASSERT_OK(device().transfer(to_device(buffer, data.data(), 16), copied));
  copied.reset();
  EXPECT_EQ(read(buffer), data) << "the work of a destroyed event goes on";
}

TEST_F(AsyncOrder, an_event_outlives_the_buffer_of_its_copy) {
  Buffer buffer = four();
  Floats data(4, 0);
  keep_busy();
  Event copied;
  ASSERT_OK(device().transfer(from_device(buffer, data.data(), 16), copied));
  buffer.reset();
  EXPECT_OK(device().finish(copied));
  EXPECT_EQ(data, (Floats{1, 2, 3, 4}));
}

TEST_F(AsyncOrder, outputs_of_a_pending_run_are_written_by_copies) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = device().submit({neg, {input.get()}});
  const Floats data{5, 6, 7, 8};
  Event copied;
  ASSERT_OK(device().transfer(to_device(run.outputs[0], data.data(), 16), copied));
  EXPECT_OK(device().finish(copied));
  EXPECT_EQ(read(run.outputs[0]), data) << "the copy was submitted behind the run that made the buffer";
}

TEST_F(AsyncOrder, outputs_of_a_pending_run_are_donated) {
  const Executable neg = device().build("graph(%0: f32[4] -> 0) { %1: f32[4] = aten::neg(%0) return %1 }");
  keep_busy();
  Buffer value = four();
  for (int i = 0; i < 21; ++i) {
    auto run = device().submit({neg, {value.get()}, 1, {}, {1}});
    ASSERT_OK(run.submitted);
    (void)value.release();
    value = std::move(run.outputs[0]);
  }
  EXPECT_EQ(read(value), (Floats{-1, -2, -3, -4}));
}

TEST_F(AsyncOrder, graphs_are_compiled_while_work_is_pending) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = device().submit({neg, {input.get()}});
  const Executable add = device().build(kAdd4);
  const auto later = device().submit({add, {run.outputs[0].get(), input.get()}});
  EXPECT_EQ(read(later.outputs[0]), (Floats{0, 0, 0, 0}));
}

TEST_F(AsyncOrder, memory_stats_answers_while_work_is_pending) {
  if (!api().memory_stats) LTC_NOT_APPLICABLE("the plugin has no memory_stats");
  keep_busy();
  EXPECT_NO_THROW((void)device().memory_stats());
}

TEST_F(AsyncOrder, refusals_answer_while_work_is_pending) {
  const Executable add = device().build(kAdd4), neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto run = device().submit({neg, {input.get()}});
  EXPECT_EQ(code_text(device().submit({add, {input.get()}}).submitted.code), "INVALID_ARGUMENT");
  EXPECT_EQ(read(run.outputs[0]), (Floats{-1, -2, -3, -4})) << "a refusal leaves pending work alone";
}

TEST_F(AsyncOrder, a_refused_copy_does_not_take_part_in_the_queue) {
  const Buffer buffer = four();
  Floats data(8, 7);
  keep_busy();
  Event done;
  EXPECT_TRUE(device().transfer(to_device(buffer, data.data(), 32), done));
  data.assign(8, 8);
  EXPECT_EQ(read(buffer), (Floats{1, 2, 3, 4})) << "after an error nothing has been submitted";
}

TEST_F(AsyncOrder, a_run_of_no_elements_waits_for_its_turn) {
  const Executable empty = device().build("graph(%0: f32[0]) { %1: f32[0] = aten::neg(%0) return %1 }"),
                   neg = device().build(kNeg4);
  const Buffer input = four(), nothing = device().buffer(DType::kF32, {0});
  keep_busy();
  const auto first = device().submit({neg, {input.get()}});
  const auto second = device().submit({empty, {nothing.get()}});
  if (!second.done) LTC_NOT_APPLICABLE("such a run is complete when execute returns");
  ASSERT_OK(device().finish(second.done));
  EXPECT_TRUE(is_over(first.done)) << "an event is over only when all that was submitted before it is";
}

TEST_F(AsyncOrder, a_copy_of_no_bytes_waits_for_its_turn) {
  const Executable neg = device().build(kNeg4);
  const Buffer input = four();
  keep_busy();
  const auto first = device().submit({neg, {input.get()}});
  Event done;
  ASSERT_OK(device().transfer(to_device(input, nullptr, 0), done));
  if (!done) LTC_NOT_APPLICABLE("such a run is complete when execute returns");
  ASSERT_OK(device().finish(done));
  EXPECT_TRUE(is_over(first.done)) << "an event is over only when all that was submitted before it is";
}

}  // namespace
}  // namespace ltc::conformance
