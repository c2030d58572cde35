// The end of a program that does not wait for its last steps.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "core/torch/ltc.h"

namespace ltc {
namespace {

[[noreturn]] void end_with_queued_steps() {
  setenv("LTC_LOG", "debug", 1);
  register_device();
  const auto noise = [] { return at::rand({256, 256}, at::TensorOptions(at::Device(at::kPrivateUse1, 0))); };
  at::Tensor x = noise();
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < 40; ++i) x = at::softmax(at::matmul(noise(), x), -1) + noise();
    mark_step();
  }
  std::exit(0);
}

TEST(Exit, steps_that_are_queued_are_computed) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // a process of its own, and not a fork of one that has threads
  EXPECT_EXIT(end_with_queued_steps(), testing::ExitedWithCode(0), testing::Not(testing::HasSubstr("failed")));
}

}  // namespace
}  // namespace ltc
