// The fixture of the tiers' tests: an entered plugin, an open device, and a clean end.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "conformance/kit/plugin_under_test.h"
#include "core/host/status.h"

namespace ltc::conformance {

// Skips come in two kinds, told apart by their first word: what the plugin need not have, and what it says that it cannot.
#define LTC_NOT_APPLICABLE(...) GTEST_SKIP() << "not applicable: " << ::ltc::cat(__VA_ARGS__)
#define LTC_UNSUPPORTED_BY_PLUGIN(...) GTEST_SKIP() << "unsupported: " << ::ltc::cat(__VA_ARGS__)

// The contract leaves these to the plugin.
#define LTC_NEEDS_SECOND_OPEN() \
  if (!Device::opens_again(instance())) LTC_UNSUPPORTED_BY_PLUGIN("the device is one's alone: it is open once at a time")
#define LTC_NEEDS_PARTS() \
  if (!device().copies_parts()) LTC_UNSUPPORTED_BY_PLUGIN("the device copies whole buffers only")
#define LTC_NEEDS_THREADS() \
  if (instance().describe().flags & LTC_PLUGIN_ONE_CALL_AT_A_TIME) LTC_NOT_APPLICABLE("the plugin takes one call at a time")

// Shows the plugin's own words where it fails.
#define EXPECT_OK(failure) EXPECT_PRED_FORMAT1(::ltc::conformance::succeeded, failure)
#define ASSERT_OK(failure) ASSERT_PRED_FORMAT1(::ltc::conformance::succeeded, failure)
inline ::testing::AssertionResult succeeded(const char* call, const Failure& failure) {
  if (!failure) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << call << " failed: " << failure;
}

// Every plugin, without a device.
class EntryTest : public ::testing::Test {
 protected:
  void SetUp() override { instance_ = std::make_unique<Instance>(); }
  void TearDown() override {
    instance_.reset();
    EXPECT_EQ(host::live_statuses(), 0u) << "status objects were made and neither returned nor destroyed";
  }
  Instance& instance() { return *instance_; }
  const ltc_plugin_api& api() { return instance_->api(); }

  std::unique_ptr<Instance> instance_;
};

// Every plugin, with device 0 open.
class DeviceTest : public EntryTest {
 protected:
  void SetUp() override {
    EntryTest::SetUp();
    device_ = std::make_unique<Device>(*instance_);
  }
  void TearDown() override {
    device_.reset();
    EntryTest::TearDown();
  }
  Device& device() { return *device_; }

  std::unique_ptr<Device> device_;
};

// Plugins that hold F32: nearly all tests of memory use it.
class MemoryTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (!device().supports(DType::kF32)) LTC_UNSUPPORTED_BY_PLUGIN("the device has no f32");
  }
};

// Plugins that compute.
class ComputeTest : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    if (!IsSkipped() && !instance().computes()) LTC_NOT_APPLICABLE("the plugin holds memory and does not compute");
  }

  // aten::neg and its like of a vector, read back.
  std::vector<float> floats(const Buffer& buffer, Sizes sizes) {
    return device().download(buffer, DType::kF32, sizes).values<float>();
  }
};

// Plugins with events.
class EventTest : public ComputeTest {
 protected:
  void SetUp() override {
    ComputeTest::SetUp();
    if (!IsSkipped() && !instance().is_asynchronous()) LTC_NOT_APPLICABLE("the plugin is synchronous: it has no events");
  }
};

// Host memory that the plugin may be writing: a race on purpose.
__attribute__((no_sanitize("thread"))) inline float seen_now(const float& element) {
  return static_cast<const volatile float&>(element);
}

inline ltc_scalar number(double value) { return {.f = value}; }
inline ltc_scalar integer(int64_t value) { return {.i = value}; }

inline constexpr const char* kNeg4 = "graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) return %1 }";
inline constexpr const char* kAdd4 =
    "graph(%0: f32[4], %1: f32[4]) { %2: f32[4] = aten::add.Tensor(%0, %1) {alpha=1} return %2 }";
inline constexpr const char* kMul4 = "graph(%0: f32[4], %1: f32[4]) { %2: f32[4] = aten::mul.Tensor(%0, %1) return %2 }";

}  // namespace ltc::conformance
