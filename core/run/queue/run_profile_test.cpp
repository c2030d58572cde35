#include "core/run/queue/run_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/run/testing/queue_test_support.h"

namespace ltc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunProfileTest : public testing::QueueTest {
 protected:
  void SetUp() override {
    open("test");
    program_ = program(
        "graph(%0: f32[2]) { %1: f32[2] = aten::sin(%0) %2: f32[2] = aten::neg(%1) %3: f32[2] = aten::neg(%2) return %3 }");
    timeline::start(true);
  }
  void TearDown() override { timeline::stop(); }

  const Step& device_step() const { return *std::ranges::find(program_->steps, true, &Step::on_device); }
  static ltc_kernel_profile kernel(std::string_view name, std::span<const uint32_t> nodes, uint64_t begin, uint64_t end) {
    auto kernel = ltc_kernel_profile{.struct_size = LTC_SIZE_TO(ltc_kernel_profile, bytes)};
    kernel.name = {name.data(), name.size()};
    kernel.nodes = nodes.data();
    kernel.node_count = nodes.size();
    kernel.begin_ns = begin;
    kernel.end_ns = end;
    return kernel;
  }
  // One run, in which the plugin tells of these.
  void run(uint64_t id, const std::vector<ltc_kernel_profile>& kernels, const std::vector<ltc_scratch_profile>& blocks = {}) {
    ASSERT_TRUE(timeline::wants_kernels(*program_, id));
    RunProfile profile(program_, device_step(), id);
    const auto& told = reinterpret_cast<const ltc_run_profile&>(*profile.chain(nullptr));
    for (const ltc_kernel_profile& one : kernels) told.kernel(told.profile, &one);
    for (const ltc_scratch_profile& one : blocks) told.scratch(told.profile, &one);
    told.kernel(told.profile, nullptr);
    told.scratch(told.profile, nullptr);
    profile.report();
  }

  testing::ProgramRef program_;
};

TEST_F(RunProfileTest, KernelsReachTheTimeline) {
  const uint32_t nodes[] = {0, 1};
  const uint64_t now = timeline::now_ns();
  run(1, {kernel("neg+neg", nodes, now, now + 30)},
      {{.struct_size = LTC_SIZE_TO(ltc_scratch_profile, bytes), .node = 0, .output = 0, .offset = 8, .bytes = 8}});
  run(2, {kernel("neg+neg", nodes, now + 40, now + 50)});
  const timeline::Timeline seen = timeline::stop();
  ASSERT_THAT(seen.programs, SizeIs(1));
  ASSERT_THAT(seen.programs[0].kernels, SizeIs(1));
  const timeline::Kernel& sum = seen.programs[0].kernels[0];
  EXPECT_THAT(sum.nodes, ElementsAre(1, 2)) << "sin is the host's, so the device's nodes are the program's last two";
  EXPECT_EQ(sum.step, 1u);
  EXPECT_EQ(sum.runs, 2);
  EXPECT_EQ(sum.total_ns, 40);
  ASSERT_THAT(seen.events, SizeIs(2));
  EXPECT_STREQ(seen.events[0].name, "kernel");
  EXPECT_EQ(seen.events[0].reason, "neg+neg");
  EXPECT_EQ(seen.events[1].run_id, 2u);
  EXPECT_THAT(seen.programs[0].scratch, IsEmpty()) << "the second run told of none";
}

TEST_F(RunProfileTest, WhatMakesNoSenseIsLeftOut) {
  const uint32_t nodes[] = {1, 99, 0, 0};
  const uint64_t now = timeline::now_ns();
  auto small = kernel("small", nodes, now, now + 1);
  small.struct_size = 8;
  ltc_scratch_profile block{.struct_size = LTC_SIZE_TO(ltc_scratch_profile, bytes), .node = 77, .output = 5, .bytes = 16};
  run(1, {kernel("\xff", nodes, now + 9, now + 3), small}, {block});
  const timeline::Timeline seen = timeline::stop();
  ASSERT_THAT(seen.programs.at(0).kernels, SizeIs(1));
  EXPECT_THAT(seen.programs[0].kernels[0].nodes, ElementsAre(1, 2));
  EXPECT_EQ(seen.programs[0].kernels[0].runs, 0) << "it ended before it began";
  EXPECT_EQ(seen.programs[0].kernels[0].name, "\uFFFD");
  EXPECT_THAT(seen.events, IsEmpty());
  ASSERT_THAT(seen.programs[0].scratch, SizeIs(1));
  EXPECT_EQ(seen.programs[0].scratch[0].label, "work memory");
}

TEST_F(RunProfileTest, OtherKernelsBeginAnew) {
  const uint32_t nodes[] = {0};
  const uint64_t now = timeline::now_ns();
  run(1, {kernel("a", nodes, now, now + 5), kernel("b", nodes, now, now + 5)});
  run(2, {kernel("c", nodes, now, now + 7)});
  const timeline::Timeline seen = timeline::stop();
  ASSERT_THAT(seen.programs.at(0).kernels, SizeIs(1));
  EXPECT_EQ(seen.programs[0].kernels[0].name, "c");
  EXPECT_EQ(seen.programs[0].kernels[0].total_ns, 7);
}

TEST_F(RunProfileTest, FewOfManyRunsAreLookedInto) {
  timeline::start();
  int looks = 0;
  for (uint64_t id = 1; id <= 1000; ++id) looks += timeline::wants_kernels(*program_, id);
  EXPECT_EQ(looks, 5) << "1, 4, 16, 64, 256";
  EXPECT_TRUE(timeline::wants_kernels(*program_, 1001) == timeline::wants_kernels(*program_, 1001)) << "two steps of one run";
  timeline::start(true);
  for (uint64_t id = 1; id <= 5; ++id) EXPECT_TRUE(timeline::wants_kernels(*program_, id));
}

TEST_F(RunProfileTest, APluginThatDoesNotListItIsNotAsked) {
  download(run_all(program_, {upload({0, 0})})[0]);
  const timeline::Timeline seen = timeline::stop();
  ASSERT_THAT(seen.programs, SizeIs(1));
  EXPECT_THAT(seen.programs[0].kernels, IsEmpty());
}

}  // namespace
}  // namespace ltc
