#include "core/ir/location.h"

#include <cstdlib>

#include "core/report/fallback_policy.h"
#include "core/run/device/recorder.h"
#include "core/run/testing/test_support.h"

namespace ltc {
namespace {

using namespace ltc::testing;  // NOLINT: the helpers of test_support.h
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LocationId here = kNoLocation;

class LocationsTest : public LazyTest {
 protected:
  LocationsTest() {
    set_locator([] { return here; });
  }
  ~LocationsTest() override { set_locator(nullptr); }
  void record_at(const char* line, LazyStorage& out, std::string_view op, std::vector<LazyStorage*> inputs) {
    here = intern_location(line);
    record(out, op, std::move(inputs));
  }
};

TEST_F(LocationsTest, NodesKnowTheirs) {
  open("test");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  for (int step = 0; step < 2; ++step) {
    {
      LazyStorage gone(device());
      record_at("a.py:1", gone, "aten::relu", {&a});
    }
    record_at("a.py:2", b, "aten::neg", {&a});
    record_at("a.py:3", b, "aten::relu", {&b});
    EXPECT_EQ(device().trace_text(), R"(graph(%0: f32[2]) {
  %1: f32[2] = aten::neg(%0)  # a.py:2
  %2: f32[2] = aten::relu(%1)  # a.py:3
  return %2
}
)");
    sync();
  }
}

TEST_F(LocationsTest, AreNoPartOfAProgramsIdentity) {
  open("test");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  for (const char* line : {"a.py:1", "a.py:2", "a.py:3"}) {
    record_at(line, b, "aten::neg", {&a});
    sync();
  }
  EXPECT_EQ(compiled(), 1);
}

TEST_F(LocationsTest, AreInErrorsOfRuns) {
  open("watched_async");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  watch.on_execute = [] { return "no memory today"; };
  record_at("a.py:1", b, "aten::neg", {&a});
  record_at("a.py:2", b, "aten::relu", {&b});
  EXPECT_EQ(read_error(b), "a.py:1: aten::neg: no memory today [watched_async]");
  record_at("a.py:3", b, "aten::neg", {&a});
  EXPECT_EQ(read_error(b), "a.py:3: aten::neg: no memory today [watched_async]");
}

TEST_F(LocationsTest, AreInTheAccountOfFallbacks) {
  open("test");
  LazyStorage a(device()), b(device()), c(device());
  fill(a, {1, 2});
  for (int step = 0; step < 3; ++step) {
    record_at("a.py:1", b, "aten::neg", {&a});
    record_at("a.py:2", b, "aten::sin", {&b});
    record_at("a.py:3", c, "aten::relu", {&b});
    record_at("a.py:4", c, "test::placed", {&c});
    sync_and_wait();
  }
  const std::vector<Fallback> all = fallbacks();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].op, "aten::sin");
  EXPECT_EQ(all[0].count, 3);
  EXPECT_EQ(all[0].bytes, 3 * 2 * 8);  // two floats in, two out
  EXPECT_EQ(all[1].op, "test::placed");
  EXPECT_EQ(all[1].where, "a.py:4");
  EXPECT_EQ(all[1].reason, "plugin test does not claim it");
  EXPECT_EQ(metrics::counter_value("aten::sin"), 3);
  EXPECT_EQ(metrics::counter_value(metrics::kFallbackBytes), 3 * 4 * 8);
  EXPECT_THAT(metrics::report(),
              HasSubstr("Fallback: test::placed\n  Count: 3\n  Bytes: 48\n  First at: a.py:4\n  Reason: plugin"));
  metrics::reset();
  EXPECT_THAT(fallbacks(), IsEmpty());
}

// ---- LTC_EAGER

class EagerTest : public LocationsTest {
 protected:
  EagerTest() { setenv("LTC_EAGER", "1", 1); }
  ~EagerTest() override { unsetenv("LTC_EAGER"); }
};

TEST_F(EagerTest, EveryOpRunsAtOnce) {
  open("watched_async");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  record(b, "aten::neg", {&a});
  EXPECT_TRUE(Recorder(device()).may_end());
  device().end_op();
  EXPECT_THAT(watch.executes(), SizeIs(1));
  record(b, "aten::neg", {&b});
  device().end_op();
  EXPECT_THAT(watch.executes(), SizeIs(2));
  EXPECT_THAT(read(b), ElementsAre(1, 2));
  EXPECT_EQ(metrics::counter_value(metrics::kEagerBarrier), 2);
}

TEST_F(EagerTest, TheOpThrowsItsError) {
  open("watched_async");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  watch.on_execute = [] { return "no memory today"; };
  record_at("a.py:1", b, "aten::neg", {&a});
  EXPECT_EQ(message_of([&] { device().end_op(); }), "a.py:1: aten::neg: no memory today [watched_async]");
  watch.on_execute = nullptr;
  record(b, "aten::neg", {&a});
  device().end_op();
  EXPECT_THAT(read(b), ElementsAre(-1, -2));
}

TEST_F(LazyTest, WithoutEagerAnOpWaits) {
  open("watched");
  LazyStorage a(device()), b(device());
  fill(a, {1, 2});
  record(b, "aten::neg", {&a});
  device().end_op();
  EXPECT_THAT(watch.executes(), IsEmpty());
}

}  // namespace
}  // namespace ltc
