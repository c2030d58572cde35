#include "core/run/queue/queue.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TwoQueuesTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    const auto plugin = load_plugin("test_two");
    for (const uint32_t ordinal : {0, 1}) queues_.push_back(std::make_unique<DeviceQueue>(plugin->open_device(ordinal), 2));
  }
  std::vector<std::unique_ptr<DeviceQueue>> queues_;
};

TEST_F(TwoQueuesTest, BytesGoFromOneToTheOtherWithoutTheHost) {
  DeviceQueue &a = *queues_[0], &b = *queues_[1];
  EXPECT_TRUE(b.copies_from(a, f32({3})));
  EXPECT_FALSE(b.copies_from(*std::make_unique<DeviceQueue>(open_device("test"), 2), f32({3})));
  const BufferRef there = b.copy_from_peer(a.upload(host_value({1, 2, 3})));
  const BufferRef back = a.copy_from_peer(there);
  EXPECT_THAT(ltc::testing::download(b, there), ElementsAre(1, 2, 3));
  EXPECT_THAT(ltc::testing::download(a, back), ElementsAre(1, 2, 3));
  EXPECT_EQ(metrics::counter_value(metrics::kBytesBetweenDevices), 24);
  EXPECT_EQ(metrics::counter_value(metrics::kBytesToDevice), 12);
}

TEST_F(TwoQueuesTest, AnErrorGoesAlong) {
  auto failed = std::make_shared<Buffer>(*queues_[0], f32({3}));
  failed->error = std::make_exception_ptr(Error(Code::kInternal, "nobody made it"));
  const BufferRef copied = queues_[1]->copy_from_peer(failed);
  EXPECT_THAT(message_of([&] { ltc::testing::download(*queues_[1], copied); }), HasSubstr("nobody made it"));
}

}  // namespace
}  // namespace ltc
