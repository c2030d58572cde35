// Many threads that trace, differentiate, end steps and read at once. A sanitizer's build says whether they race.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>
#include <vector>

#include "core/run/device/device_table.h"
#include "core/torch/autograd/backward_engine.h"
#include "core/torch/capture/captured_function.h"
#include "core/torch/ltc.h"

namespace ltc {
namespace {

constexpr int kThreads = 20, kSteps = 8;
const at::Device kDevice(at::kPrivateUse1, 0);

// Gradient descent towards `goal`; every thread's graph has its own size, every second one shares its with another's.
std::vector<float> descend(at::Device device, int size, float goal) {
  at::Tensor weight = at::zeros({size}, at::TensorOptions(device)).requires_grad_();
  for (int step = 0; step < kSteps; ++step) {
    const at::Tensor loss = (weight * 2 - goal).square().sum();
    const at::Tensor gradient = torch::autograd::grad({loss}, {weight})[0];
    {
      at::NoGradGuard no_grad;
      weight.sub_(gradient * 0.05);
      weight.view({1, size}).add_(step % 2);  // a view of what the step changes
    }
    if (step % 3 == 0 && !device.is_cpu()) mark_step();
    if (step % 4 == 3) {
      EXPECT_TRUE(std::isfinite(loss.item<float>()));
    }
  }
  const at::Tensor result = weight.detach().cpu();
  return {result.const_data_ptr<float>(), result.const_data_ptr<float>() + size};
}

TEST(Threads, twenty_trace_and_differentiate_at_once) {
  register_device();
  std::vector<std::vector<float>> found(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&found, t] { found[t] = descend(kDevice, 2 + t / 2, static_cast<float>(t)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_THAT(found[t], testing::Pointwise(testing::FloatEq(), descend(at::kCPU, 2 + t / 2, static_cast<float>(t))));
  }
}

// Backwards through the core's engine, of graphs of their own that end in one leaf.
TEST(Threads, twenty_go_backward_to_one_leaf) {
  register_device();
  const at::Tensor leaf = at::ones({3}, at::TensorOptions(kDevice)).requires_grad_();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&leaf, t] {
      for (int step = 0; step < kSteps; ++step) {
        const at::Tensor loss = (leaf * t).sum();
        ASSERT_TRUE(nothing_intercepts_backward());
        run_backward({torch::autograd::impl::gradient_edge(loss)}, {at::ones_like(loss)}, /*keep_graph=*/false,
                     /*create_graph=*/false);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(leaf.grad().sum().item<float>(), 3.0F * kSteps * kThreads * (kThreads - 1) / 2);
}

// A tensor that all threads read while one op after the other is recorded on it.
TEST(Threads, twenty_read_one_tensor) {
  register_device();
  const at::Tensor shared = at::arange(6, at::TensorOptions(kDevice).dtype(at::kFloat)) * 2;
  std::vector<float> sums(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int step = 0; step < kSteps; ++step) sums[t] = (shared.slice(0, t % 6) + t).sum().item<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    float expected = 0;
    for (int i = t % 6; i < 6; ++i) expected += static_cast<float>(2 * i + t);
    EXPECT_EQ(sums[t], expected);
  }
}

TEST(Threads, twenty_call_one_captured_function) {
  register_device();
  const at::NoGradGuard no_grad;
  const at::Tensor shared = at::arange(6, at::TensorOptions(kDevice).dtype(at::kFloat));
  const auto arguments = [&](const at::Tensor& own) { return TensorArguments(DeviceTable::instance().get(0), {shared, own}); };
  FunctionCapture capture(arguments(at::zeros({6}, kDevice)));
  at::Tensor own = capture.placeholders()[1];
  own.add_(1);
  const auto function = capture.finish({(capture.placeholders()[0] * own).sum()}).first;

  std::vector<float> sums(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const at::NoGradGuard no_grad_here;
      const at::Tensor mine = at::zeros({6}, kDevice);
      for (int step = 0; step < kSteps + t; ++step) {
        mine.mul_(1);  // recorded, so that the call has to end a step first
        sums[t] = function->call(arguments(mine), function->captured().scalars)[0].item<float>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(sums[t], static_cast<float>(15 * (kSteps + t)));
}

}  // namespace
}  // namespace ltc
