// A device that is lost is opened again: what lived on it is gone with that reason, and the next step works.
#include "core/run/device/capture.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The third run of the first device loses it. One device is open at a time, so a new one opens only where all of the old is gone.
class LostDeviceTest : public LazyTest, public ::testing::WithParamInterface<const char*> {
 protected:
  LostDeviceTest() { open(GetParam()); }

  Floats negated(const Floats& values) {
    LazyStorage x(device()), y(device());
    fill(x, values);
    record(y, "aten::neg", {&x});
    sync();
    return read(y);
  }
  uint32_t openings() { return device().queue().device().generation(); }
};
INSTANTIATE_TEST_SUITE_P(Plugins, LostDeviceTest, ::testing::Values("test_lost", "test_lost_async"),
                         [](const auto& info) { return info.param; });

TEST_P(LostDeviceTest, TheNextStepWorks) {
  LazyStorage kept(device()), x(device()), y(device());
  fill(kept, {7, 8});
  EXPECT_THAT(read(kept), ElementsAre(7, 8));
  for (int run = 0; run < 2; ++run) {
    fill(x, {1, 2});
    record(y, "aten::neg", {&x});
    record(kept, "aten::neg", {&kept});
    sync_and_wait();
  }
  EXPECT_EQ(openings(), 1u);
  record(y, "aten::neg", {&y});
  EXPECT_THAT(read_error(y), HasSubstr("the cable was pulled"));
  for (int i = 0; i < 5; ++i) EXPECT_THAT(negated({1, 2}), ElementsAre(-1, -2));
  EXPECT_EQ(openings(), 2u);
  EXPECT_THAT(read_error(kept), HasSubstr("the value lived on a device that was lost: the cable was pulled"));
  record(x, "aten::neg", {&kept});
  EXPECT_THAT(read_error(x), HasSubstr("the cable was pulled")) << "what depends on a lost value is lost";
  fill(kept, {3, 4});
  record(x, "aten::neg", {&kept});
  EXPECT_THAT(read(x), ElementsAre(-3, -4));
}

TEST_P(LostDeviceTest, ACapturedFunctionIsCompiledAgain) {
  LazyStorage placeholder(device()), result(device());
  Capture capture(device());
  capture.add_argument(placeholder, f32({2}));
  record(result, "aten::neg", {&placeholder});
  LazyStorage* const results[] = {&result};
  const Captured negate = capture.finish(results);
  const auto call = [&](const Floats& values) {
    LazyStorage x(device()), y(device());
    fill(x, values);
    LazyStorage* const storages[] = {&x, &y};
    device().call(negate, {}, storages);
    return read(y);
  };
  EXPECT_THAT(call({1, 2}), ElementsAre(-1, -2));
  EXPECT_THAT(call({1, 2}), ElementsAre(-1, -2));
  EXPECT_THAT(message_of([&] { call({1, 2}); }), HasSubstr("the cable was pulled"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(call({3, 4}), ElementsAre(-3, -4));
  EXPECT_EQ(openings(), 2u);
}

TEST_P(LostDeviceTest, NothingOfTheOldDeviceIsDestroyedTwice) {
  std::vector<std::unique_ptr<LazyStorage>> storages;
  for (int i = 0; i < 4; ++i) {
    storages.push_back(std::make_unique<LazyStorage>(device()));
    fill(*storages.back(), {1, 2});
    record(*storages.back(), "aten::neg", {storages.back().get()});
    sync();
  }
  device().wait();
  EXPECT_THAT(negated({1, 2}), ElementsAre(-1, -2));
  storages.clear();
  device().wait();
  EXPECT_THAT(negated({5, 6}), ElementsAre(-5, -6));
  EXPECT_EQ(openings(), 2u);
}

}  // namespace
}  // namespace ltc
