// Devices through their slots, with good plugins and with bad ones.
#include <chrono>
#include <cmath>
#include <thread>

#include "core/host/testing/test_rig.h"

namespace ltc::host {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class DeviceTest : public HostTest {};
class GoodDeviceTest : public HostTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(GoodDeviceTest, keeps_what_was_uploaded) {
  Rig rig(GetParam());
  ltc_buffer* buffer = rig.upload({1, 2, 3});
  EXPECT_THAT(rig.download(buffer, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(rig.download(buffer, 2), ElementsAre(1, 2));
  rig.device->destroy_buffer(buffer);
  EXPECT_EQ(rig.device->memory_stats().peak_bytes, 12u);
  EXPECT_EQ(rig.device->memory_stats().limit_bytes, std::nullopt);
}

TEST_P(GoodDeviceTest, copies_on_the_device_and_checks_ranges) {
  Rig rig(GetParam());
  ltc_buffer* from = rig.upload({1, 2, 3});
  ltc_buffer* to = rig.upload({7, 8, 9});
  auto args = sized<ltc_transfer_args>();
  args.direction = LTC_ON_DEVICE;
  args.buffer = to;
  args.offset_bytes = 4;
  args.size_bytes = 8;
  args.source = from;
  rig.finish(rig.device->transfer(args));
  EXPECT_THAT(rig.download(to, 3), ElementsAre(7, 1, 2));
  args.offset_bytes = 8;
  EXPECT_EQ(error_of([&] { (void)rig.device->transfer(args); }).code(), Code::kInvalidArgument);
  rig.device->destroy_buffer(from);
  rig.device->destroy_buffer(to);
}

TEST_P(GoodDeviceTest, runs_with_other_scalars_and_no_new_compile) {
  Rig rig(GetParam());
  CGraph graph = scaled_graph();
  EXPECT_THAT(rig.device->claims(graph.get()), ElementsAre(1, 1, 1));
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* x = rig.upload({1, -2, 3});
  for (const double s : {2.0, -3.0}) {
    ltc_buffer* y = nullptr;
    rig.finish(rig.run(executable, {x}, {ltc_scalar{.f = s}}, &y));
    const float k = static_cast<float>(1 + s);
    EXPECT_THAT(rig.download(y, 3), ElementsAre(std::max(0.f, k), std::max(0.f, -2 * k), std::max(0.f, 3 * k)));
    rig.device->destroy_buffer(y);
  }
  rig.device->destroy_executable(executable);
  rig.device->destroy_buffer(x);
}

TEST_P(GoodDeviceTest, multiplies_matrices_and_broadcasts) {
  Rig rig(GetParam());
  CGraph graph;
  const uint32_t a = graph.param(LTC_F32, {2, 2});
  const uint32_t b = graph.param(LTC_F32, {2, 2});
  const uint32_t bias = graph.param(LTC_F32, {2});
  const uint32_t product = graph.node("aten::mm", {a, b}, LTC_F32, {2, 2});
  graph.output(graph.node("aten::add.Tensor", {product, bias}, LTC_F32, {2, 2}, {2}));
  ltc_executable* executable = rig.build(graph);
  const std::vector<ltc_buffer*> inputs = {rig.upload({1, 2, 3, 4}), rig.upload({5, 6, 7, 8}), rig.upload({10, 20})};
  ltc_buffer* y = nullptr;
  ltc_event* event = rig.run(executable, inputs, {}, &y);
  // All are destroyed while the run may still use them: the queue orders it.
  for (ltc_buffer* input : inputs) rig.device->destroy_buffer(input);
  rig.device->destroy_executable(executable);
  rig.finish(event);
  EXPECT_THAT(rig.download(y, 4), ElementsAre(39, 62, 63, 90));
  rig.device->destroy_buffer(y);
}

TEST_P(GoodDeviceTest, a_donated_input_is_gone) {
  Rig rig(GetParam());
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  const uint8_t donate = 1;
  ltc_buffer* value = rig.upload({1, 2, 3});
  for (int step = 0; step < 10; ++step) {
    ltc_buffer* next = nullptr;
    rig.finish(rig.run(executable, {value}, {ltc_scalar{.f = 0.0}}, &next, &donate));
    value = next;
  }
  EXPECT_THAT(rig.download(value, 3), ElementsAre(1, 2, 3));
  EXPECT_LE(*rig.device->memory_stats().in_use_bytes, 24u);
  rig.device->destroy_buffer(value);
  rig.device->destroy_executable(executable);
}

TEST_P(GoodDeviceTest, names_the_node_that_it_cannot_lower) {
  Rig rig(GetParam());
  CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {2});
  const uint32_t y = graph.node("aten::neg", {x}, LTC_F32, {2});
  graph.output(graph.node("aten::sin", {y}, LTC_F32, {2}));
  EXPECT_THAT(rig.device->claims(graph.get()), ElementsAre(1, 0));
  try {
    rig.device->lower(graph.get());
    FAIL();
  } catch (const UnsupportedNode& e) {
    EXPECT_EQ(e.node(), 1u);
    EXPECT_EQ(e.code(), Code::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("lower: not an op of this plugin"));
  }
}

TEST_P(GoodDeviceTest, prints_a_program_and_saves_none) {
  Rig rig(GetParam());
  CGraph graph = scaled_graph();
  ltc_program* program = rig.device->lower(graph.get());
  EXPECT_EQ(rig.device->program_text(program),
            "%2 = aten::mul.Tensor(%0, %1)\n%3 = aten::add.Tensor(%0, %2)\n%4 = aten::relu(%3)\n");
  ltc_executable* executable = rig.device->compile(program, 3);
  rig.device->destroy_program(program);
  EXPECT_EQ(rig.device->save_executable(executable), std::nullopt);
  EXPECT_EQ(rig.device->load_executable("x", 1), nullptr);
  rig.device->destroy_executable(executable);
}

TEST_P(GoodDeviceTest, a_refused_run_consumes_nothing) {
  Rig rig(GetParam());
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* x = rig.upload({1, 2, 3});
  ltc_buffer* y = reinterpret_cast<ltc_buffer*>(1);
  const uint8_t donate = 1;
  const Error error = error_of([&] { (void)rig.run(executable, {x}, {}, &y, &donate); });
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_EQ(y, nullptr);
  EXPECT_THAT(rig.download(x, 3), ElementsAre(1, 2, 3));
  rig.device->destroy_buffer(x);
  rig.device->destroy_executable(executable);
}

INSTANTIATE_TEST_SUITE_P(Plugins, GoodDeviceTest, ::testing::Values("test", "test_async"),
                         [](const auto& info) { return info.param; });

TEST_F(DeviceTest, null_is_no_object_to_destroy) {
  Rig rig("test");
  rig.device->destroy_buffer(nullptr);
  rig.device->destroy_program(nullptr);
  rig.device->destroy_executable(nullptr);
  rig.device->destroy_event(nullptr);
  EXPECT_TRUE(rig.device->wait(nullptr, 0));
}

TEST_F(DeviceTest, a_wait_may_time_out_and_be_repeated) {
  Rig rig("test_slow");
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* x = rig.upload({1, 2, 3});
  ltc_buffer* y = nullptr;
  const auto start = std::chrono::steady_clock::now();
  ltc_event* event = rig.run(executable, {x}, {ltc_scalar{.f = 1.0}}, &y);
  EXPECT_FALSE(rig.device->wait(event, 0));
  EXPECT_FALSE(rig.device->wait(event, 1000000));
  std::thread other([&] { EXPECT_TRUE(rig.device->wait(event)); });
  EXPECT_TRUE(rig.device->wait(event));
  other.join();
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(50));
  rig.device->destroy_event(event);
  rig.device->destroy_buffer(x);
  rig.device->destroy_buffer(y);
  rig.device->destroy_executable(executable);
}

TEST_F(DeviceTest, an_error_rides_in_the_event_and_the_queue_goes_on) {
  Rig rig("test_fails");
  CGraph graph = scaled_graph();
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* x = rig.upload({1, 2, 3});
  for (const bool fails : {false, true, false}) {
    ltc_buffer* y = nullptr;
    ltc_event* event = rig.run(executable, {x}, {ltc_scalar{.f = 1.0}}, &y);
    ASSERT_NE(y, nullptr);
    for (int i = 0; fails && i < 2; ++i) {  // each wait says it anew
      const Error error = error_of([&] { rig.device->wait(event); });
      EXPECT_EQ(error.code(), Code::kInternal);
      EXPECT_STREQ(error.what(), "[test_fails] event_wait: every second run fails");
    }
    if (!fails) {
      EXPECT_TRUE(rig.device->wait(event));
    }
    rig.device->destroy_event(event);
    rig.device->destroy_buffer(y);
  }
  rig.device->destroy_buffer(x);
  rig.device->destroy_executable(executable);
}

TEST_F(DeviceTest, a_plugin_without_computing_claims_nothing) {
  Rig rig("test_memory");
  CGraph graph = scaled_graph();
  EXPECT_THAT(rig.device->claims(graph.get()), ElementsAre(0, 0, 0));
  const Error error = error_of([&] { rig.device->lower(graph.get()); });
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_STREQ(error.what(), "[test_memory] lower: this plugin holds memory and does not compute");
  ltc_buffer* buffer = rig.upload({4, 5});
  EXPECT_THAT(rig.download(buffer, 2), ElementsAre(4, 5));
  rig.device->destroy_buffer(buffer);
}

TEST_F(DeviceTest, an_exception_of_the_plugin_becomes_an_error) {
  Rig rig("test_throws");
  CGraph graph = scaled_graph();
  EXPECT_STREQ(message_of([&] { rig.device->claims(graph.get()); }).c_str(),
               "[test_throws] the plugin threw from claims: not a std::exception");
  ltc_program* program = rig.device->lower(graph.get());
  ltc_executable* executable = rig.device->compile(program, 0);
  rig.device->destroy_executable(executable);
  ltc_buffer* y = nullptr;
  const Error error = error_of([&] { (void)rig.run(executable, {}, {}, &y); });
  EXPECT_EQ(error.code(), Code::kInternal);
  EXPECT_STREQ(error.what(), "[test_throws] the plugin threw from execute: no luck today");
  rig.device->destroy_program(program);  // nobody to throw at: it goes to the log
}

TEST_F(DeviceTest, what_a_plugin_hands_out_is_checked) {
  EXPECT_EQ(message_of([] { Rig("test_null_buffer").buffer(3); }),
            "[test_null_buffer] buffer_create succeeded and gave a null handle");
  Rig stray("test_stray_event");
  ltc_buffer* buffer = stray.buffer(3);
  auto args = sized<ltc_transfer_args>();
  args.direction = LTC_TO_DEVICE;
  args.buffer = buffer;
  EXPECT_EQ(message_of([&] { (void)stray.device->transfer(args); }),
            "[test_stray_event] transfer gave an event, but the plugin has no event_wait");
  stray.device->destroy_buffer(buffer);
}

TEST_F(DeviceTest, a_missing_output_is_an_error_and_the_others_are_freed) {
  Rig rig("test_bad_outputs");
  EXPECT_EQ(broken_run(rig), "[test_bad_outputs] execute succeeded and gave no output 1 of 2");
}

}  // namespace
}  // namespace ltc::host
