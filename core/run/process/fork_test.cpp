#include "core/run/process/fork.h"

#include <sys/wait.h>
#include <unistd.h>

#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;

class ForkTest : public RunTest {};

TEST_F(ForkTest, AForkedChildIsRefusedAndTheParentGoesOn) {
  watch_forks();
  LazyDevice device(0, open_device("test_async"));
  DeviceQueue& queue = device.queue();
  {
    LazyStorage storage(device);
    BufferRef buffer = queue.upload(host_value({1, 2}));
    Recorder(device).bind(storage, buffer, f32({2}));
    EXPECT_FALSE(forked());
    const pid_t child = fork();
    if (child == 0) {
      // Bit i of the exit code says whether check i holds; no test framework in here.
      const auto refuses = [](auto&& call) {
        try {
          call();
        } catch (const Error& error) {
          return error.code() == Code::kUnsupported &&
                 std::string_view(error.what()) == "cannot use ltc in a forked process, use the spawn start method";
        }
        return false;
      };
      int code = forked() ? 1 : 0;
      code |= refuses([&] { Recorder recorder(device); }) ? 2 : 0;
      code |= refuses([&] { device.sync(metrics::kMarkStep); }) ? 4 : 0;
      code |= refuses([&] { queue.upload(HostValue{f32({2}), nullptr}); }) ? 8 : 0;
      code |= refuses([&] {
        float values[2];
        queue.download(buffer, values);
      })
                  ? 16
                  : 0;
      device.wait();
      { LazyStorage gone(device); }
      buffer.reset();
      queue.stop();
      _exit(code | 32);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 63);
    EXPECT_FALSE(forked());
    EXPECT_THAT(ltc::testing::download(queue, buffer), ElementsAre(1, 2));
  }
}

}  // namespace
}  // namespace ltc
