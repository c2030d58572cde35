// The execute tier: several devices of one instance.
#include <memory>
#include <optional>
#include <thread>

#include "conformance/tiers/execute_fixture.h"

namespace ltc::conformance {
namespace {

// The first two devices.
class ExecuteDevices : public Execute {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (IsSkipped()) return;
    if (instance().describe().device_count < 2) LTC_NOT_APPLICABLE("the plugin has one device");
    other_ = std::make_unique<Device>(instance(), 1);
  }
  void TearDown() override {
    other_.reset();
    Execute::TearDown();
  }
  static Floats negated(Device& device, const Executable& executable, const Buffer& input) {
    const auto outputs = device.run({.executable = executable, .inputs = {input.get()}});
    return device.download(outputs[0], DType::kF32, {4}).values<float>();
  }
  // So many runs, each on the result of the one before.
  static Floats counted(Device& device, int runs) {
    const Executable executable = device.build("graph(%0: f32[4]) { %1: f32[4] = aten::add.Tensor(%0, %0) {alpha=1} return %1 }");
    Buffer value = device.upload(Array::floats({1, 2, 3, 4}));
    for (int i = 0; i < runs; ++i) value = std::move(device.run({.executable = executable, .inputs = {value.get()}})[0]);
    return device.download(value, DType::kF32, {4}).values<float>();
  }

  std::unique_ptr<Device> other_;
};

TEST_F(ExecuteDevices, each_computes) {
  const uint32_t count = static_cast<uint32_t>(instance().describe().device_count);
  for (uint32_t ordinal = 2; ordinal < count; ++ordinal) {
    Device one(instance(), ordinal);
    EXPECT_EQ(counted(one, 3), (Floats{8, 16, 24, 32})) << "device " << ordinal;
  }
  EXPECT_EQ(counted(device(), 3), (Floats{8, 16, 24, 32}));
  EXPECT_EQ(counted(*other_, 3), (Floats{8, 16, 24, 32}));
}

TEST_F(ExecuteDevices, each_has_memory_of_its_own) {
  const Buffer here = device().upload(Array::floats({1, 2, 3, 4})), there = other_->upload(Array::floats({5, 6, 7, 8}));
  EXPECT_EQ(floats(here, {4}), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(other_->download(there, DType::kF32, {4}).values<float>(), (Floats{5, 6, 7, 8}));
}

TEST_F(ExecuteDevices, executables_of_each_run_in_turn) {
  const Executable here = device().build(kNeg4), there = other_->build(kNeg4);
  const Buffer input = four(), other_input = other_->upload(Array::floats({10, 20, 30, 40}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(negated(device(), here, input), (Floats{-1, -2, -3, -4}));
    EXPECT_EQ(negated(*other_, there, other_input), (Floats{-10, -20, -30, -40}));
  }
}

TEST_F(ExecuteDevices, a_thread_for_each_is_right) {
  if (instance().describe().flags & LTC_PLUGIN_ONE_CALL_AT_A_TIME) LTC_NOT_APPLICABLE("the plugin takes one call at a time");
  Floats there;
  std::thread worker([&] { there = counted(*other_, 60); });
  const Floats here = counted(device(), 60);
  worker.join();
  EXPECT_EQ(here, (Floats{0x1p60f, 0x2p60f, 0x3p60f, 0x4p60f}));
  EXPECT_EQ(there, here);
}

TEST_F(ExecuteDevices, one_goes_on_when_another_closes) {
  const Executable executable = device().build(kNeg4);
  const Buffer input = four();
  for (int i = 0; i < 3; ++i) {
    other_.reset();
    EXPECT_EQ(negated(device(), executable, input), (Floats{-1, -2, -3, -4}));
    other_ = std::make_unique<Device>(instance(), 1);
    EXPECT_EQ(counted(*other_, 1), (Floats{2, 4, 6, 8}));
  }
}

}  // namespace
}  // namespace ltc::conformance
