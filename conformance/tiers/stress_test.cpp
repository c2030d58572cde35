// The stress tier: the same work many thousand times, from many threads, and ends in each order that the contract allows. No
// check measures time.
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "conformance/kit/fixture.h"
#include "conformance/kit/heap.h"
#include "conformance/kit/in_threads.h"
#include "conformance/kit/process_end.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;
constexpr int kQueued = 10'000, kCycles = 1'000, kThreads = 16;
constexpr int64_t kFlatBytes = 16 << 20;  // of the process, after all cycles: caches of drivers and the allocator's slack

// Runs `body` kCycles times. The process keeps its size after the first quarter.
void expect_flat_cycles(const char* what, const std::function<void()>& body) {
  constexpr int kQuarter = kCycles / 4;
  for (int i = 0; i < kQuarter; ++i) body();
  const auto resident = resident_bytes();
  const auto lost = median_growth_per_time(kQuarter, body);  // the other three
  const auto resident_after = resident_bytes();
  EXPECT_EQ(host::live_statuses(), 0u) << "status objects were made and neither returned nor destroyed";
  if (!lost || !resident || !resident_after) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*lost, 16) << "bytes of the heap lost with each " << what;
  EXPECT_LT(*resident_after - *resident, kFlatBytes) << "bytes by which the process grew while " << what << "s came and went";
}

class StressEntry : public EntryTest {};

TEST_F(StressEntry, instances_come_and_go_a_thousand_times) {
  expect_flat_cycles("instance", [] { EXPECT_GT(Instance().describe().device_count, 0u); });
}

TEST_F(StressEntry, instances_with_a_device_come_and_go_a_thousand_times) {
  instance_.reset();
  expect_flat_cycles("instance with its device", [] {
    Instance instance;
    Device device(instance);
  });
  instance_ = std::make_unique<Instance>();
}

TEST_F(StressEntry, a_device_opens_and_closes_a_thousand_times) {
  expect_flat_cycles("device", [&] { Device device(instance()); });
}

ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// A thread that was joined is listed for a moment more. A pool of a driver grows and then stops.
TEST_F(StressEntry, a_closed_device_leaves_no_thread) {
  const auto open_and_close = [&] {
    Device device(instance());
    if (!device.supports(DType::kF32)) return;
    (void)device.upload(Array::floats({1, 2, 3, 4}));
    if (!instance().computes()) return;
    const Executable executable = device.build(kNeg4);
    const Buffer input = device.buffer(DType::kF32, {4});
    (void)device.run({executable, {input.get()}});
  };
  open_and_close();
  constexpr int kTimes = 5;
  int grew = 0;
  for (int i = 0; i < kTimes; ++i) {
    const auto before = threads_of_this_process();
    open_and_close();
    for (int wait = 0; wait < 500 && threads_of_this_process() > before; ++wait) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    grew += threads_of_this_process() > before;
  }
  EXPECT_LT(grew, kTimes) << "each device that was opened and closed left a thread: device_close joins its threads";
}

class Stress : public ComputeTest {
 protected:
  static Buffer four(Device& device, float value) { return device.upload(Array::floats({value, value, value, value})); }
  static float first_of(Device& device, const Buffer& buffer) {
    return device.download(buffer, DType::kF32, {4}).values<float>()[0];
  }
};

// A chain, so each run depends on the one before it; nothing is waited for.
TEST_F(Stress, ten_thousand_queued_runs_are_right_and_keep_no_memory) {
  const Executable add = device().build(kAdd4);
  const Buffer one = four(device(), 1);
  const auto round = [&] {
    Buffer value = four(device(), 0);
    for (int i = 0; i < kQueued; ++i) {
      auto run = device().submit({add, {value.get(), one.get()}});
      ASSERT_OK(run.submitted) << "run " << i;
      value = std::move(run.outputs[0]);
    }
    EXPECT_EQ(first_of(device(), value), static_cast<float>(kQueued));
  };
  round();
  const auto before = heap_in_use();
  round();
  const auto after = heap_in_use();
  if (!before || !after) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(static_cast<double>(*after - *before) / kQueued, kLeakBytes) << "bytes of host memory lost with each run";
}

// Each run makes 64 KiB: a plugin that kept what was destroyed in queue order would hold 640 MiB.
TEST_F(Stress, ten_thousand_outputs_are_freed_in_time) {
  const std::string type = cat("f32[", 1 << 14, "]");
  const Executable neg = device().build(cat("graph(%0: ", type, ") { %1: ", type, " = aten::neg(%0) return %1 }"));
  const Buffer input = device().upload(Array(DType::kF32, {1 << 14}));
  const auto before = resident_bytes();
  int64_t most = 0;
  for (int i = 0; i < kQueued; ++i) {
    const auto run = device().submit({neg, {input.get()}});
    ASSERT_OK(run.submitted) << "run " << i;
    if (i % 64 == 63) {
      ASSERT_OK(device().finish(run.done));  // as the host's window does
      most = std::max(most, resident_bytes().value_or(0));
    }
  }
  if (!before) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(most - *before, int64_t{256} << 20) << "bytes by which the process grew while 4 MiB of outputs lived at once";
}

TEST_F(Stress, ten_thousand_queued_copies_are_right) {
  const Buffer there = four(device(), 0), other = four(device(), 0);
  std::vector<Floats> data(64, Floats(4));
  std::vector<Event> events(data.size());
  for (int i = 0; i < kQueued; ++i) {
    const size_t slot = static_cast<size_t>(i) % data.size();
    if (events[slot]) {
      ASSERT_OK(device().finish(events[slot]));  // its host memory is still in use
    }
    data[slot].assign(4, static_cast<float>(i));
    ASSERT_OK(device().transfer(to_device(i % 2 ? other : there, data[slot].data(), 16), events[slot]));
  }
  EXPECT_EQ(first_of(device(), there), kQueued - 2);
  EXPECT_EQ(first_of(device(), other), kQueued - 1);
  for (const Event& event : events) EXPECT_OK(device().finish(event));
}

TEST_F(Stress, hundreds_of_executables_live_at_once) {
  std::vector<Executable> executables;
  for (int i = 0; i < 250; ++i) {
    const int64_t size = 1 + i % 50;
    executables.push_back(device().build(cat("graph(%0: f32[", size, "]) { %1: f32[", size, "] = aten::neg(%0) return %1 }")));
  }
  for (size_t i = 0; i < executables.size(); i += 7) {
    const int64_t size = 1 + static_cast<int64_t>(i % 50);
    const Buffer input = device().upload(Array::floats(Floats(static_cast<size_t>(size), 2)));
    EXPECT_EQ(floats(device().run({executables[i], {input.get()}})[0], {size}), Floats(static_cast<size_t>(size), -2));
  }
}

// ---- threads

// Random calls of one thread on a device; values are checked. `submits` holds the device's transfers and runs apart.
class RandomCalls {
 public:
  RandomCalls(Device& device, std::mutex& submits, unsigned seed)
      : device_(device), submits_(submits), random_(seed), negate_(device.build(kNeg4)) {}

  void call() {
    switch (random_() % 6) {
      case 0: return make();
      case 1: return negate();
      case 2: return check();
      case 3: return destroy();
      case 4: negate_ = device_.build(kNeg4); return;
      default: (void)device_.buffer(DType::kF32, {static_cast<int64_t>(random_() % 4096)}); return;
    }
  }
  void check_all() {
    while (!values_.empty()) check(), values_.pop_back();
  }

 private:
  struct Value {
    Buffer buffer;
    float first;
  };

  void make() {
    if (values_.size() >= 32) return destroy();
    const auto first = static_cast<float>(random_() % 1000);
    const std::lock_guard lock(submits_);
    values_.push_back({device_.upload(Array::floats({first, 0, 0, 0})), first});
  }
  void negate() {
    if (values_.empty()) return;
    Value& value = values_[random_() % values_.size()];
    Device::Run run;
    {
      const std::lock_guard lock(submits_);
      run = device_.submit({negate_, {value.buffer.get()}});
    }
    ASSERT_OK(run.submitted);
    if (random_() % 2) {
      EXPECT_OK(device_.finish(run.done));
    }
    value = {std::move(run.outputs[0]), -value.first};
  }
  void check() {
    if (values_.empty()) return;
    const Value& value = values_.back();
    const std::lock_guard lock(submits_);
    EXPECT_EQ(device_.download(value.buffer, DType::kF32, {4}).values<float>()[0], value.first);
  }
  void destroy() {
    if (!values_.empty()) values_.erase(values_.begin() + static_cast<ptrdiff_t>(random_() % values_.size()));
  }

  Device& device_;
  std::mutex& submits_;
  std::mt19937 random_;
  Executable negate_;
  std::vector<Value> values_;
};

TEST_F(Stress, sixteen_threads_call_at_random) {
  LTC_NEEDS_THREADS();
  std::mutex submits;
  in_threads(kThreads, [&](int i) {
    RandomCalls calls(device(), submits, static_cast<unsigned>(i));
    for (int round = 0; round < 200; ++round) calls.call();
    calls.check_all();
  });
}

TEST_F(Stress, sixteen_threads_have_a_device_each) {
  LTC_NEEDS_THREADS();
  LTC_NEEDS_SECOND_OPEN();
  in_threads(kThreads, [&](int i) {
    Device mine(instance());
    std::mutex nobody_else;
    RandomCalls calls(mine, nobody_else, static_cast<unsigned>(i));
    for (int round = 0; round < 100; ++round) calls.call();
    calls.check_all();
  });
}

TEST_F(Stress, sixteen_threads_have_an_instance_each) {
  LTC_NEEDS_THREADS();
  LTC_NEEDS_SECOND_OPEN();
  in_threads(kThreads, [&](int i) {
    Instance instance;
    Device mine(instance);
    std::mutex nobody_else;
    RandomCalls calls(mine, nobody_else, static_cast<unsigned>(i));
    for (int round = 0; round < 30; ++round) calls.call();
    calls.check_all();
  });
}

TEST_F(Stress, what_a_thread_made_outlives_it) {
  LTC_NEEDS_THREADS();
  Buffer buffer;
  Executable executable;
  in_threads(1, [&](int) {
    executable = device().build(kNeg4);
    buffer = four(device(), 3);
  });
  EXPECT_EQ(first_of(device(), device().run({executable, {buffer.get()}})[0]), -3);
}

// ---- the end

TEST_F(Stress, objects_end_in_any_order) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    Program program = device().lower(kNeg4);
    Executable executable = device().compile(program);
    Buffer input = four(device(), 2);
    auto run = device().submit({executable, {input.get()}});
    ASSERT_OK(run.submitted);
    std::vector<std::function<void()>> ends{[&] { program.reset(); }, [&] { executable.reset(); }, [&] { input.reset(); },
                                            [&] { run.outputs.clear(); }, [&] { run.done.reset(); }};
    std::ranges::shuffle(ends, random);
    for (const auto& end : ends) end();
  }
  EXPECT_EQ(first_of(device(), four(device(), 1)), 1);
}

TEST_F(Stress, devices_of_an_instance_close_in_any_order) {
  LTC_NEEDS_SECOND_OPEN();
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<Device>> devices;
    for (int i = 0; i < 4; ++i) devices.push_back(std::make_unique<Device>(instance()));
    std::ranges::shuffle(devices, random);
    while (!devices.empty()) {
      EXPECT_EQ(first_of(*devices.back(), four(*devices.back(), 5)), 5);
      devices.pop_back();
    }
  }
}

class StressEnd : public Stress {
 protected:
  void SetUp() override {
    Stress::SetUp();
    device_.reset();  // another process opens it
  }
};

TEST_F(StressEnd, everything_ends_from_atexit) { expect_end("atexit"); }
TEST_F(StressEnd, a_process_ends_with_everything_open) { expect_end("open"); }
TEST_F(StressEnd, a_process_ends_with_work_pending) { expect_end("pending"); }
TEST_F(StressEnd, a_forked_child_that_calls_nothing_ends) { expect_end("fork"); }

}  // namespace
}  // namespace ltc::conformance
