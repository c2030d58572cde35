#include "core/torch/dispatch/warm_up.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <string>
#include <thread>

#include "core/report/metrics.h"
#include "core/run/device/device_table.h"
#include "core/torch/ltc.h"

namespace ltc {
namespace {

TEST(WarmUp, leaves_nothing_in_the_trace) {
  register_device();
  LazyDevice& device = DeviceTable::instance().get(0);
  const TraceExtent before = device.trace_extent();
  const auto runs = [] {
    return counter_value(std::string(metrics::kCachedCompile)) + counter_value(std::string(metrics::kUncachedCompile));
  };
  const int64_t runs_before = runs();
  EXPECT_TRUE(warm_up_recording(device));
  EXPECT_EQ(device.trace_extent(), before);
  mark_step();
  EXPECT_EQ(runs(), runs_before);
}

TEST(WarmUp, is_not_seen_in_anomaly_mode) {
  register_device();
  LazyDevice& device = DeviceTable::instance().get(0);
  torch::autograd::AnomalyMode::set_enabled(true);
  EXPECT_FALSE(warm_up_recording(device));
  torch::autograd::AnomalyMode::set_enabled(false);
  EXPECT_TRUE(warm_up_recording(device));
}

TEST(WarmUp, goes_on_beside_a_thread_that_records) {
  register_device();
  LazyDevice& device = DeviceTable::instance().get(0);
  bool all = true;
  std::thread other([&] {
    for (int i = 0; i < 50; ++i) all = all && warm_up_recording(device);
  });
  at::Tensor sum = at::zeros({4}, at::TensorOptions(at::Device(at::kPrivateUse1, 0)));
  for (int i = 0; i < 500; ++i) {
    sum.add_(1);
    if (i % 100 == 0) mark_step();
  }
  other.join();
  EXPECT_TRUE(all);
  EXPECT_TRUE(at::equal(sum.cpu(), at::full({4}, 500)));
}

}  // namespace
}  // namespace ltc
