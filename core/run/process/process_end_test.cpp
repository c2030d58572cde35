// The end of the process. It waits for nothing that its own thread does: a plugin may end the process in the middle of a call, as
// a driver without a licence does. Threads of the core's own go on to their end.
#include "core/run/process/process_end.h"

#include <cstdlib>
#include <thread>

#include "core/run/device/device_table.h"
#include "core/run/testing/queue_test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h

class ProcessEndTest : public ::testing::Test {
 protected:
  ProcessEndTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }  // a process of its own, not a fork of this one
};

void use_device(const char* plugin) {
  setenv("LTC_BACKEND", plugin_path(plugin).c_str(), 1);
  std::atexit([] { DeviceTable::instance().shut_down(); });
  LazyDevice& device = DeviceTable::instance().get(0);
  auto* storage = new LazyStorage(device);
  BufferRef buffer = device.queue().upload(host_value({1, 2}));
  const TypeId type = buffer->type;
  Recorder(device).bind(*storage, std::move(buffer), type);
  {
    Recorder recorder(device);
    const ValueId operand = recorder.read(*storage);
    recorder.bind(*storage, recorder.node(intern_op("aten::neg"), type, kNoAttrs, std::array{operand}), type);
  }
  Floats values(2);
  device.queue().download(device.computed(*storage, metrics::kReadBarrier), values.data());
}

TEST_F(ProcessEndTest, APluginEndsItWhereItIsAskedAndOpened) {
  EXPECT_EXIT(use_device("test_exits_in_describe"), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(use_device("test_exits_in_open"), ::testing::ExitedWithCode(3), "");
}

TEST_F(ProcessEndTest, APluginEndsItInTheQueuesThread) {
  EXPECT_EXIT(use_device("test_exits"), ::testing::ExitedWithCode(0), "");
}

DeviceQueue* g_queue = nullptr;

void run_here() {
  std::atexit([] {
    g_queue->drain();
    g_queue->stop();
  });
  set_runs_here([] { return true; });
  g_queue = new DeviceQueue(open_device("test_exits"), 2);
  const ProgramRef neg = compile(parse(kNeg), g_queue->device());
  neg->typical_ns = 0;
  const auto output = std::make_shared<Buffer>(*g_queue, f32({2}));
  g_queue->execute({neg, {g_queue->upload(host_value({1, 2}))}, {}, {output}, 1});
}

void end_beside_an_exempt_thread() {
  std::thread own([] {
    exempt_this_thread();
    count_this_thread();
    const LongCall call;  // another thread would stop at its end
    while (!process_is_ending()) std::this_thread::yield();
  });
  stop_other_threads([] {}, std::chrono::hours(1));
  own.join();
  std::exit(4);
}

TEST_F(ProcessEndTest, AThreadOfTheCoresGoesOnToItsEnd) {
  EXPECT_EXIT(end_beside_an_exempt_thread(), ::testing::ExitedWithCode(4), "");
}

TEST_F(ProcessEndTest, APluginEndsItInTheProgramsThread) { EXPECT_EXIT(run_here(), ::testing::ExitedWithCode(0), ""); }

}  // namespace
}  // namespace ltc
