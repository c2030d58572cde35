// Memory and copies of two devices, on a driver that keeps them on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/host/plugin.h"
#include "core/host/sized.h"

namespace ltc::cuda {
namespace {

using ::testing::Each;

constexpr size_t kCount = 1024;

class CudaMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(LTC_NVRTC_FOLDER).empty()) GTEST_SKIP() << "no NVRTC where this was configured";
    plugin_ = host::Plugin::load(LTC_CUDA_PLUGIN,
                                 {{"path", LTC_TWO_DEVICES_DRIVER_FOLDER ":" LTC_NVRTC_FOLDER}, {"without", "cublas+cudnn"}});
    ASSERT_EQ(plugin_->describe().device_count, 2u) << plugin_->describe().why_no_device;
    for (uint32_t ordinal : {0, 1}) devices_.push_back(plugin_->open_device(ordinal));
  }

  ltc_buffer* buffer(size_t device) {
    static constexpr int64_t kSizes[] = {kCount};
    auto type = host::sized<ltc_type>();
    type.dtype = LTC_I32;
    type.rank = 1;
    type.sizes = kSizes;
    return devices_[device]->create_buffer(type);
  }
  void transfer(size_t device, ltc_transfer_args args, bool wait = false) {
    args.struct_size = host::kAbiSize<ltc_transfer_args>;
    args.size_bytes = kCount * sizeof(int);
    ltc_event* event = devices_[device]->transfer(args);
    if (wait) devices_[device]->wait(event);
    devices_[device]->destroy_event(event);
  }
  void write(size_t device, ltc_buffer* to, const std::vector<int>& from) {
    transfer(device, {.direction = LTC_TO_DEVICE, .buffer = to, .from = from.data()}, true);
  }
  std::vector<int> read(size_t device, ltc_buffer* from) {
    std::vector<int> result(kCount, -1);
    transfer(device, {.direction = LTC_FROM_DEVICE, .buffer = from, .to = result.data()}, true);
    return result;
  }
  void copy(size_t device, ltc_buffer* to, ltc_buffer* from) {
    transfer(device, {.direction = LTC_ON_DEVICE, .buffer = to, .source = from});
  }

  std::shared_ptr<host::Plugin> plugin_;
  std::vector<std::unique_ptr<host::PluginDevice>> devices_;
};

TEST_F(CudaMemory, goes_to_a_device_and_back) {
  ltc_buffer *a = buffer(0), *b = buffer(0);
  write(0, a, std::vector(kCount, 7));
  copy(0, b, a);
  EXPECT_THAT(read(0, b), Each(7));
  for (ltc_buffer* one : {a, b}) devices_[0]->destroy_buffer(one);
}

// Nothing has waited for the write when the copy is submitted, and both directions ask for access once.
TEST_F(CudaMemory, is_copied_from_one_device_to_another_after_what_wrote_it) {
  EXPECT_TRUE(devices_[0]->info().flags & LTC_DEVICE_PEER_COPY);
  ltc_buffer *a = buffer(0), *b = buffer(1), *c = buffer(0);
  for (const int value : {7, 8}) {
    write(0, a, std::vector(kCount, value));
    copy(1, b, a);
    copy(0, c, b);
    EXPECT_THAT(read(1, b), Each(value));  // before the first device is waited for
    EXPECT_THAT(read(0, c), Each(value));
  }
  devices_[0]->destroy_buffer(a);
  devices_[0]->destroy_buffer(c);
  devices_[1]->destroy_buffer(b);
}

// The source is gone and its memory written anew, and that device done, before the other begins.
TEST_F(CudaMemory, is_not_used_again_before_the_other_device_has_copied_it) {
  ltc_buffer *a = buffer(0), *b = buffer(1);
  write(0, a, std::vector(kCount, 7));
  copy(1, b, a);
  devices_[0]->destroy_buffer(a);
  ltc_buffer* next = buffer(0);
  write(0, next, std::vector(kCount, 8));
  EXPECT_THAT(read(0, next), Each(8));
  EXPECT_THAT(read(1, b), Each(7));
  devices_[0]->destroy_buffer(next);
  devices_[1]->destroy_buffer(b);
}

}  // namespace
}  // namespace ltc::cuda
