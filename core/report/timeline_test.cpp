#include "core/report/timeline.h"

#include <algorithm>
#include <thread>

#include "core/run/testing/test_support.h"

namespace ltc::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names(const std::vector<Event>& events) {
  std::vector<std::string> result;
  for (const Event& event : events) result.push_back(event.name);
  return result;
}

TEST(Timeline, IsOffByDefault) {
  EXPECT_FALSE(enabled());
  { Span span("unseen"); }
  EXPECT_THAT(stop().events, IsEmpty());
}

TEST(Timeline, KeepsSpansInTheOrderOfTheirEnds) {
  start();
  EXPECT_TRUE(enabled());
  {
    Span outer("outer", 7);
    Span inner("inner");
  }
  { Span last("last"); }
  const auto events = stop().events;
  EXPECT_FALSE(enabled());
  ASSERT_THAT(names(events), ElementsAre("inner", "outer", "last"));
  EXPECT_EQ(events[1].run_id, 7u);
  EXPECT_EQ(events[0].run_id, 0u);
  EXPECT_EQ(events[0].thread, events[2].thread);
  EXPECT_LE(events[1].begin_ns, events[0].begin_ns);
  EXPECT_LE(events[0].end_ns, events[1].end_ns);
  EXPECT_LE(events[1].end_ns, events[2].begin_ns);
  EXPECT_THAT(stop().events, IsEmpty());
}

TEST(Timeline, StartForgetsAndWhatIsOpenAcrossTheEdgesIsLeftOut) {
  start();
  { Span old("old"); }
  start();
  EXPECT_THAT(stop().events, IsEmpty());
  {
    Span before("before");
    start();
  }
  EXPECT_THAT(stop().events, IsEmpty());
  start();
  {
    Span after("after");
    stop();
  }
  EXPECT_THAT(stop().events, IsEmpty());
}

TEST(Timeline, ThreadsAreTold) {
  start();
  { Span span("here"); }
  std::thread([] { Span span("there"); }).join();
  const auto events = stop().events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_NE(events[0].thread, events[1].thread);
}

class TimelineTest : public ltc::testing::RunTest {};

TEST_F(TimelineTest, AStep) {
  using ltc::testing::f32;
  LazyDevice device(0, ltc::testing::open_device("test_async"));
  LazyStorage x(device);
  const auto step = [&] {
    {
      Recorder recorder(device);
      const ValueId value = recorder.read(x);
      recorder.bind(x, recorder.node(intern_op("aten::neg"), f32({2}), kNoAttrs, {{value}}), f32({2}));
    }
    device.sync(metrics::kMarkStep);
    device.wait();
  };
  const auto find = [](const std::vector<Event>& events, std::string_view name) {
    const auto found = std::ranges::find(events, name, &Event::name);
    EXPECT_NE(found, events.end()) << name;
    return found == events.end() ? Event{} : *found;
  };

  start();
  const BufferRef buffer = device.queue().upload(ltc::testing::host_value({1, 2}));
  Recorder(device).bind(x, buffer, f32({2}));
  step();
  std::vector<Event> events = stop().events;
  EXPECT_THAT(names(events), UnorderedElementsAre("upload", "compile", "barrier", "execute", "device", "wait"));
  EXPECT_TRUE(std::ranges::is_sorted(events, {}, &Event::end_ns));
  const Event barrier = find(events, "barrier"), compile = find(events, "compile"), execute = find(events, "execute");
  EXPECT_LE(barrier.begin_ns, compile.begin_ns);
  EXPECT_LE(compile.end_ns, barrier.end_ns);
  EXPECT_LE(compile.end_ns, execute.begin_ns);
  EXPECT_EQ(barrier.thread, compile.thread);
  EXPECT_NE(barrier.thread, execute.thread);
  EXPECT_EQ(find(events, "upload").thread, execute.thread);
  EXPECT_EQ(barrier.run_id, 1u);
  EXPECT_EQ(execute.run_id, 1u);
  EXPECT_EQ(barrier.reason, metrics::kMarkStep);
  EXPECT_EQ(barrier.ops, 1);
  EXPECT_EQ(compile.reason, "new");
  EXPECT_EQ(find(events, "upload").bytes, 8);
  const Event computed = find(events, "device");
  EXPECT_EQ(computed.run_id, 1u);
  EXPECT_LE(execute.begin_ns, computed.begin_ns);
  EXPECT_LE(computed.end_ns, find(events, "wait").end_ns) << "who waits for the device finds the end of all that ran";
  for (const Event& event : {compile, execute, computed}) EXPECT_NE(event.program, 0u) << event.name;

  step();  // nobody watches
  start();
  step();
  ltc::testing::download(device.queue(), device.computed(x, metrics::kReadBarrier));
  device.wait();
  events = stop().events;
  EXPECT_THAT(names(events), UnorderedElementsAre("barrier", "execute", "device", "wait", "download", "wait"));
  EXPECT_EQ(find(events, "execute").run_id, 3u);
  EXPECT_LE(find(events, "execute").end_ns, find(events, "download").begin_ns);
  EXPECT_EQ(find(events, "download").bytes, 8);
}

}  // namespace
}  // namespace ltc::timeline
