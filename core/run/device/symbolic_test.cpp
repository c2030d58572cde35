// Sizes that change, with a plugin that understands symbols and one that does not.
#include "core/report/misses.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SymbolicTest : public LazyTest {
 protected:
  static int64_t general() { return metrics::counter_value(metrics::kSymbolicCompile); }
  static int64_t reused() { return metrics::counter_value(metrics::kSymbolicReuse); }
};

TEST_F(SymbolicTest, TwoCompilesServeAllSizes) {
  open("test_symbolic");
  for (const int64_t n : {8, 16, 4, 1, 0, 3, 1000, 4, 8, 16}) {
    const Floats values = step_of_size(n);
    EXPECT_EQ(values.size(), static_cast<size_t>(n));
    EXPECT_THAT(values, Each(3.f));
  }
  EXPECT_EQ(compiled(), 2);
  EXPECT_EQ(general(), 1);
  EXPECT_EQ(reused(), 5);
  EXPECT_EQ(found(), 3);
}

TEST_F(SymbolicTest, AnExampleOfOneRowIsNotLearnedFrom) {
  open("test_symbolic");
  for (const int64_t n : {1, 8, 16, 4}) EXPECT_THAT(step_of_size(n), Each(3.f));
  EXPECT_EQ(compiled(), 3);
  EXPECT_EQ(reused(), 1);
}

TEST_F(SymbolicTest, TheMissSaysThatFurtherSizesAreServed) {
  open("test_symbolic");
  for (const int64_t n : {80, 160, 40}) step_of_size(n);  // in no other test: equal steps are no miss
  ASSERT_EQ(misses().size(), 1u);
  EXPECT_THAT(misses()[0].difference, HasSubstr("f32[160] instead of f32[80], now for further sizes too"));
}

TEST_F(SymbolicTest, APluginThatDoesNotAskCompilesEachSize) {
  open("test");
  for (const int64_t n : {8, 16, 4, 8}) EXPECT_THAT(step_of_size(n), Each(3.f));
  EXPECT_EQ(compiled(), 3);
  EXPECT_EQ(general() + reused(), 0);
}

// The plugin takes three symbols at most.
TEST_F(SymbolicTest, ARefusedGraphIsCompiledForItsOwnSizes) {
  open("test_symbolic");
  const auto many = [&](const std::vector<int64_t>& sizes) {
    std::vector<std::unique_ptr<LazyStorage>> storages;
    for (const int64_t n : sizes) {
      storages.push_back(std::make_unique<LazyStorage>(device()));
      fill(*storages.back(), Floats(static_cast<size_t>(n), 1.f));
      record(*storages.back(), "aten::neg", {storages.back().get()});
    }
    sync();
    for (auto& storage : storages) EXPECT_THAT(read(*storage), Each(-1.f));
  };
  many({2, 3, 4, 5});
  many({6, 9, 13, 18});
  many({7, 11, 16, 22});
  EXPECT_EQ(compiled(), 3);
  EXPECT_EQ(general(), 0);
  many({8, 11, 16, 22});
  many({9, 11, 16, 22});
  EXPECT_EQ(compiled(), 4);
  EXPECT_EQ(general(), 1);
  EXPECT_EQ(reused(), 1);
}

TEST_F(SymbolicTest, AStepOfTheHostLeavesTheOthersReusable) {
  open("test_symbolic");
  const auto step_with_host = [&](int64_t n) {
    LazyStorage x(device()), y(device());
    fill(x, Floats(static_cast<size_t>(n), 1.f));
    fill(y, {1.f, 2.f});
    record(x, "aten::neg", {&x});
    record(x, "aten::sin", {&x});
    record(y, "aten::neg", {&y});
    record(y, "aten::sin", {&y});
    record(x, "aten::neg", {&x});
    record(y, "aten::neg", {&y});
    sync();
    EXPECT_THAT(read(x), Each(-99.f));
    EXPECT_THAT(read(y), ElementsAre(-99.f, -98.f));
  };
  for (const int64_t n : {3, 4, 5, 6}) step_with_host(n);
  EXPECT_EQ(compiled(), 2);
  EXPECT_EQ(reused(), 2);
}

TEST_F(SymbolicTest, DonationGoesOn) {
  open("test_symbolic");
  for (const int64_t n : {8, 16, 4, 5}) {
    LazyStorage x(device());
    fill(x, Floats(static_cast<size_t>(n), 1.f));
    sync();
    for (int i = 0; i < 3; ++i) {
      scale(x, 2);
      sync();
    }
    EXPECT_THAT(read(x), Each(8.f));
  }
  EXPECT_EQ(compiled(), 2);
}

}  // namespace
}  // namespace ltc
