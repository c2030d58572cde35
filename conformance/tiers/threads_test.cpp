// The threads tier: everything but transfer and execute may be called from any thread at any time. Run it under a thread
// sanitizer too: what these tests see is only what goes wrong loudly.
#include <atomic>
#include <mutex>
#include <thread>

#include "conformance/kit/fixture.h"
#include "conformance/kit/in_threads.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/host/sized.h"
#include "core/ir/text.h"

namespace ltc::conformance {
namespace {

using Floats = std::vector<float>;

class Threads : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    if (!IsSkipped()) LTC_NEEDS_THREADS();
  }
  static void round_trip(Device& device, float value) {
    const Buffer buffer = device.upload(Array::floats({value, value + 1}));
    EXPECT_EQ(device.download(buffer, DType::kF32, {2}).values<float>(), (Floats{value, value + 1}));
  }
};

TEST_F(Threads, instances_are_made_in_several_threads) {
  in_threads(4, [](int) {
    for (int i = 0; i < 25; ++i) {
      Instance another;
      EXPECT_GT(another.describe().device_count, 0u);
    }
  });
}

TEST_F(Threads, describe_is_asked_in_several_threads) {
  in_threads(4, [&](int) {
    for (int i = 0; i < 200; ++i) EXPECT_GT(instance().describe().device_count, 0u);
  });
}

TEST_F(Threads, devices_open_in_several_threads) {
  LTC_NEEDS_SECOND_OPEN();
  in_threads(4, [&](int i) {
    for (int round = 0; round < 10; ++round) {
      Device mine(instance());
      round_trip(mine, float(i));
    }
  });
}

TEST_F(Threads, devices_work_in_a_thread_each) {
  LTC_NEEDS_SECOND_OPEN();
  std::vector<std::unique_ptr<Device>> devices;
  for (int i = 0; i < 4; ++i) devices.push_back(std::make_unique<Device>(instance()));
  in_threads(4, [&](int i) {
    for (int round = 0; round < 200; ++round) round_trip(*devices[size_t(i)], float(i * 1000 + round));
  });
}

TEST_F(Threads, buffers_are_made_and_destroyed_in_several_threads) {
  in_threads(4, [&](int) {
    for (int i = 0; i < 500; ++i) (void)device().buffer(DType::kF32, {i + 1});
  });
}

TEST_F(Threads, a_buffer_is_destroyed_in_another_thread) {
  for (int i = 0; i < 50; ++i) {
    Buffer buffer = device().upload(Array::floats({1, 2}));
    std::jthread([&] { buffer.reset(); }).join();
  }
  round_trip(device(), 1);
}

TEST_F(Threads, buffers_come_and_go_while_copies_run) {
  // A count, not "until the copies are done": a lock that is taken over and over may starve them.
  std::jthread other([&] {
    for (int i = 0; i < 3000; ++i) (void)device().buffer(DType::kF32, {64});
  });
  for (int i = 0; i < 300; ++i) round_trip(device(), float(i));
}

TEST_F(Threads, transfers_come_from_any_thread_one_at_a_time) {
  std::mutex one_at_a_time;
  in_threads(4, [&](int i) {
    for (int round = 0; round < 100; ++round) {
      const std::lock_guard lock(one_at_a_time);
      round_trip(device(), float(i));
    }
  });
}

TEST_F(Threads, errors_are_made_in_several_threads) {
  in_threads(4, [&](int) {
    for (int i = 0; i < 200; ++i) {
      Buffer buffer;
      const Sizes sizes{4};
      ltc_type type = abi_type(DType::kF32, sizes);
      type.dtype = 999;
      EXPECT_EQ(code_text(device().create_buffer(type, buffer).code), "UNSUPPORTED");
    }
  });
}

TEST_F(Threads, memory_stats_are_asked_while_copies_run) {
  if (!api().memory_stats) LTC_NOT_APPLICABLE("the plugin has no memory_stats");
  std::atomic<bool> stop{false};
  std::jthread other([&] {
    while (!stop) (void)device().memory_stats();
  });
  for (int i = 0; i < 300; ++i) round_trip(device(), float(i));
  stop = true;
}

// ---- of plugins that compute

class ThreadsCompute : public ComputeTest {
 protected:
  void SetUp() override {
    ComputeTest::SetUp();
    if (!IsSkipped()) LTC_NEEDS_THREADS();
  }
  void expect_negated(const Executable& executable) {
    const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
    EXPECT_EQ(floats(device().run({executable, {input.get()}})[0], {4}), (Floats{-1, -2, -3, -4}));
  }
};

TEST_F(ThreadsCompute, claims_are_asked_in_several_threads) {
  const Graph graph = parse(kNeg4);
  const AbiGraph abi(graph);
  in_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      std::vector<uint32_t> clusters;
      EXPECT_OK(device().claims(*abi.get(), clusters));
      EXPECT_NE(clusters[0], 0u);
    }
  });
}

TEST_F(ThreadsCompute, graphs_are_lowered_in_several_threads) {
  in_threads(4, [&](int) {
    for (int i = 0; i < 25; ++i) (void)device().lower(kNeg4);
  });
}

// The graph has many nodes, so that calls overlap.
TEST_F(ThreadsCompute, large_graphs_are_claimed_and_lowered_in_several_threads) {
  std::string text = "graph(%0: f32[4]) {\n";
  for (int i = 1; i <= 1500; ++i) text += cat("%", i, ": f32[4] = ", i % 10 ? "aten::neg" : "vendor::x", "(%", i - 1, ")\n");
  const Graph graph = parse(text + "return %1500 }");
  const AbiGraph abi(graph);
  std::vector<uint32_t> alone;
  ASSERT_OK(device().claims(*abi.get(), alone));
  in_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      std::vector<uint32_t> clusters;
      EXPECT_OK(device().claims(*abi.get(), clusters));
      EXPECT_EQ(clusters, alone);
      Program program;
      const Failure refused = device().lower(*abi.get(), program);
      EXPECT_EQ(code_text(refused.code), "UNSUPPORTED");
      EXPECT_EQ(refused.node, 9u);
    }
  });
}

TEST_F(ThreadsCompute, programs_are_compiled_in_several_threads) {
  const Program program = device().lower(kNeg4);
  std::vector<Executable> executables(8);
  in_threads(8, [&](int i) { executables[size_t(i)] = device().compile(program, uint32_t(i % 4)); });
  for (const Executable& executable : executables) expect_negated(executable);
}

TEST_F(ThreadsCompute, program_text_is_written_in_several_threads) {
  if (!api().program_text) LTC_NOT_APPLICABLE("the plugin has no program_text");
  const Program program = device().lower(kAdd4);
  std::vector<std::string> texts(4);
  in_threads(4, [&](int i) {
    const ltc_sink sink{&texts[size_t(i)], [](void* to, const void* data, size_t size) {
                          static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
                          return true;
                        }};
    EXPECT_OK(Instance::asked("program_text", [&] { return api().program_text(program.get(), &sink); }));
  });
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

TEST_F(ThreadsCompute, compiling_goes_on_while_runs_go_on) {
  const Executable executable = device().build(kNeg4);
  std::atomic<bool> stop{false};
  std::jthread other([&] {
    while (!stop) (void)device().build(kAdd4);
  });
  for (int i = 0; i < 100; ++i) expect_negated(executable);
  stop = true;
}

TEST_F(ThreadsCompute, executables_are_destroyed_while_runs_go_on) {
  const Executable executable = device().build(kNeg4);
  std::vector<Executable> others;
  for (int i = 0; i < 50; ++i) others.push_back(device().build(kAdd4));
  std::jthread other([&] { others.clear(); });
  for (int i = 0; i < 50; ++i) expect_negated(executable);
}

TEST_F(ThreadsCompute, outputs_are_destroyed_in_another_thread) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
  for (int i = 0; i < 50; ++i) {
    auto outputs = device().run({executable, {input.get()}});
    std::jthread([&] { outputs.clear(); }).join();
  }
  expect_negated(executable);
}

TEST_F(ThreadsCompute, buffers_come_and_go_while_runs_go_on) {
  const Executable executable = device().build(kNeg4);
  std::jthread other([&] {
    for (int i = 0; i < 2000; ++i) (void)device().buffer(DType::kF32, {64});
  });
  for (int i = 0; i < 100; ++i) expect_negated(executable);
}

TEST_F(ThreadsCompute, describe_is_asked_while_runs_go_on) {
  const Executable executable = device().build(kNeg4);
  std::jthread other([&] {
    for (int i = 0; i < 200; ++i) EXPECT_GT(instance().describe().device_count, 0u);
  });
  for (int i = 0; i < 100; ++i) expect_negated(executable);
}

TEST_F(ThreadsCompute, devices_open_while_runs_go_on) {
  LTC_NEEDS_SECOND_OPEN();
  const Executable executable = device().build(kNeg4);
  std::jthread other([&] {
    for (int i = 0; i < 20; ++i) Device second(instance());
  });
  for (int i = 0; i < 100; ++i) expect_negated(executable);
}

TEST_F(ThreadsCompute, runs_come_from_any_thread_one_at_a_time) {
  const Executable executable = device().build(kNeg4);
  std::mutex one_at_a_time;
  in_threads(4, [&](int) {
    for (int round = 0; round < 50; ++round) {
      const std::lock_guard lock(one_at_a_time);
      expect_negated(executable);
    }
  });
}

TEST_F(ThreadsCompute, an_event_is_waited_for_while_more_is_submitted) {
  if (!instance().is_asynchronous()) LTC_NOT_APPLICABLE("the plugin is synchronous: it has no events");
  const Executable executable = device().build(kNeg4);
  const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
  for (int i = 0; i < 50; ++i) {
    const auto first = device().submit({executable, {input.get()}});
    std::jthread waiter([&] { EXPECT_OK(device().finish(first.done)); });
    const auto second = device().submit({executable, {input.get()}});
    EXPECT_OK(device().finish(second.done));
  }
}

TEST_F(ThreadsCompute, an_event_is_destroyed_in_another_thread) {
  if (!instance().is_asynchronous()) LTC_NOT_APPLICABLE("the plugin is synchronous: it has no events");
  const Executable executable = device().build(kNeg4);
  const Buffer input = device().upload(Array::floats({1, 2, 3, 4}));
  for (int i = 0; i < 50; ++i) {
    auto run = device().submit({executable, {input.get()}});
    std::jthread([&] { run.done.reset(); }).join();
  }
  expect_negated(executable);
}

}  // namespace
}  // namespace ltc::conformance
