// The plugin on devices of libtorch's other than the CPU: through the stub, which keeps their memory on the host and runs a
// stream no sooner than somebody waits for it. Most is tested by the conformance suite, which runs so too.
#include <cstdlib>

#include "torchscript/testing/plugin_test.h"

namespace ltc::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Before anything asks libtorch about CUDA.
class StubCuda : public ::testing::Environment {
 public:
  void SetUp() override {
    g_options = {{"cuda", "1"}};
    if (!dlopen(LTC_TORCHSCRIPT_STUB_CUDA, RTLD_NOW | RTLD_GLOBAL)) FAIL() << dlerror();
  }
};
const auto* const stub_cuda = ::testing::AddGlobalTestEnvironment(new StubCuda);

using TorchscriptCuda = TorchscriptTest;

TEST_F(TorchscriptCuda, HasTheDevicesOfLibtorch) {
  ltc_plugin_info info = {sizeof(info)};
  Device::expect_ok(device.api->describe(device.plugin, &info));
  EXPECT_EQ(info.device_count, 2u);
  EXPECT_STREQ(device.info.name.data, "libtorch CUDA");
}

TEST_F(TorchscriptCuda, SaysThatThereIsNone) {
  setenv("LTC_STUB_NO_DEVICE", "1", 1);
  const Entered entered;
  const ltc_entry_args& args = entered.args;
  ltc_plugin_info info = {sizeof(info)};
  Device::expect_ok(args.api->describe(args.plugin, &info));
  unsetenv("LTC_STUB_NO_DEVICE");
  EXPECT_EQ(info.device_count, 0u);
  EXPECT_THAT(info.why_no_device.data, HasSubstr("libtorch finds no CUDA device"));
  args.api->plugin_close(args.plugin);
}

// Mechanisms for the CPU only: loops over tiles, sums of rows, products in chunks, images channels-last.
TEST_F(TorchscriptCuda, RunsNothingOfTheCpusOwn) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 3}), y = g.param(LTC_F32, {3, 2}), s = g.scalar(LTC_F64);
  const uint32_t twice = g.node("aten::mul.Tensor", {x, s}, {}, LTC_F32, {2, 3});
  const uint32_t relu = g.node("aten::relu", {twice}, {}, LTC_F32, {2, 3});
  const uint32_t product = g.node("aten::mm", {relu, y}, {}, LTC_F32, {2, 2});
  const uint32_t sum =
      g.node("aten::sum.dim_IntList", {product}, {{"dim", std::vector<int64_t>{1}}, {"keepdim", int64_t{0}}}, LTC_F32, {2});
  const ltc_graph& graph = g.finish({sum});
  std::string text;
  device.api->executable_destroy(device.build(graph, &text));
  EXPECT_THAT(text, HasSubstr("aten::sum("));
  EXPECT_THAT(text, HasSubstr("device=cuda:0"));
  EXPECT_THAT(text, Not(HasSubstr("one loop over")));
  ltc_buffer *a = floats({2, 3}, {1, -2, 3, 4, 5, -6}), *b = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(run(graph, {a, b}, {number(2)})[0], ElementsAre(72, 94));
  for (ltc_buffer* one : {a, b}) device.api->buffer_destroy(one);
}

// A number that says nothing about where it is goes to the device; results of numbers alone are there.
TEST_F(TorchscriptCuda, NumbersAreWhereTheirReadersNeedThem) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {1}), s = g.scalar(LTC_F64), t = g.scalar(LTC_F64);
  const std::vector<Attr> alpha = {{"alpha", int64_t{1}}};
  const uint32_t sum = g.node("aten::add.Tensor", {s, t}, alpha, LTC_F64, {});
  const uint32_t row = g.node("aten::expand", {s}, {{"size", std::vector<int64_t>{1}}}, LTC_F64, {1});
  const uint32_t narrow = g.node("aten::_to_copy", {row}, {Attr::dtype(LTC_F32)}, LTC_F32, {1});
  const uint32_t both = g.value(LTC_F32, {2});
  g.node("aten::cat", {x, narrow}, {{"tensors.count", int64_t{2}}, {"dim", int64_t{0}}}, std::vector<uint32_t>{both});
  const uint32_t last = g.node("aten::mul.Tensor", {both, sum}, {}, LTC_F32, {2});
  ltc_buffer* in = floats({1}, {3});
  EXPECT_THAT(run(g.finish({last}), {in}, {number(2), number(0.5)})[0], ElementsAre(7.5, 5));
  device.api->buffer_destroy(in);
}

TEST_F(TorchscriptCuda, RandomBitsAreTheHosts) {
  GraphBuilder g;
  const uint32_t seed = g.scalar(LTC_I64), offset = g.scalar(LTC_I64);
  const uint32_t bits =
      g.node("ltc::philox", {seed, offset}, {{"size", std::vector<int64_t>{8}}, Attr::dtype(LTC_F32)}, LTC_F32, {8});
  const ltc_graph& graph = g.finish({bits});
  const auto there = run(graph, {}, {integer(5), integer(7)})[0];
  g_options.clear();
  {
    Device host;
    ltc_executable* executable = host.build(graph);
    std::vector<ltc_buffer*> out(1);
    ASSERT_FALSE(host.execute(executable, {}, {integer(5), integer(7)}, out));
    EXPECT_EQ(host.download<float>(out[0], 8), there);
    host.api->buffer_destroy(out[0]);
    host.api->executable_destroy(executable);
  }
  g_options = {{"cuda", "1"}};
}

// Neither copy waits for the queue, so that the event is not over when it is first asked for.
TEST_F(TorchscriptCuda, SubmitsWithoutAWait) {
  ltc_buffer* buffer = device.buffer(LTC_F32, {4});
  std::vector<float> data = {1, 2, 3, 4}, back(4);
  EXPECT_FALSE(device.write(buffer, 0, data.data(), 16));
  const ltc_transfer_args args = {
      .struct_size = sizeof(args), .direction = LTC_FROM_DEVICE, .buffer = buffer, .size_bytes = 16, .to = back.data()};
  ltc_event* done = nullptr;
  Device::expect_ok(device.api->transfer(device.device, &args, &done));
  ASSERT_NE(done, nullptr);
  EXPECT_THAT(back, Each(0));
  bool finished = true;
  Device::expect_ok(device.api->event_wait(done, 0, &finished));
  EXPECT_FALSE(finished);
  Device::expect_ok(device.api->event_wait(done, LTC_FOREVER, &finished));
  EXPECT_TRUE(finished);
  EXPECT_THAT(back, ElementsAre(1, 2, 3, 4));
  device.api->event_destroy(done);
  device.api->buffer_destroy(buffer);
}

}  // namespace
}  // namespace ltc::testing
