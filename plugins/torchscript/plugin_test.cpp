// Drives the built plugin through the C ABI alone.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>

#include "test_host.h"

namespace ltc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class TorchscriptTest : public ::testing::Test {
 protected:
  // Builds, runs once and reads the results, all of them float32.
  std::vector<std::vector<float>> run(const ltc_graph& graph, const std::vector<ltc_buffer*>& inputs,
                                      const std::vector<ltc_scalar>& scalars = {}) {
    ltc_executable* executable = device.build(graph);
    std::vector<ltc_buffer*> outputs(graph.output_count);
    const Status status = device.execute(executable, inputs, scalars, outputs);
    EXPECT_FALSE(status) << status->message;
    std::vector<std::vector<float>> results;
    for (size_t i = 0; i < outputs.size() && !status; ++i) {
      const ltc_type& type = *graph.types[graph.outputs[i]];
      const int64_t count = std::accumulate(type.sizes, type.sizes + type.rank, int64_t{1}, std::multiplies<>());
      results.push_back(device.download<float>(outputs[i], static_cast<size_t>(count)));
      device.api->buffer_destroy(outputs[i]);
    }
    device.api->executable_destroy(executable);
    return results;
  }
  ltc_buffer* floats(std::vector<int64_t> sizes, std::vector<float> data) {
    return device.upload(LTC_F32, std::move(sizes), data);
  }
  ltc_memory_stats memory() {
    ltc_memory_stats stats = {sizeof(stats)};
    Device::expect_ok(device.api->memory_stats(device.device, &stats));
    return stats;
  }

  Device device;
};

TEST(TorchscriptEntry, RefusesVersionsItDoesNotSpeak) {
  for (const auto& [oldest, newest] : {std::pair<ltc_version, ltc_version>{{2, 0}, {2, 3}}, {{0, 1}, {0, 9}}, {{1, 1}, {1, 4}}}) {
    ltc_entry_args args = {.struct_size = sizeof(args), .host = &host_api(), .oldest = oldest, .newest = newest};
    EXPECT_FALSE(entry_point()(&args));
    EXPECT_THAT(args.reason, HasSubstr("1.0"));
    EXPECT_EQ(args.plugin, nullptr);
  }
}

TEST(TorchscriptEntry, TwoInstancesShareOneLibrary) {
  Device first, second;
  EXPECT_NE(first.plugin, second.plugin);
  EXPECT_TRUE(first.info.dtypes >> LTC_BF16 & 1);
}

TEST_F(TorchscriptTest, DescribesItself) {
  ltc_plugin_info info = {sizeof(info)};
  Device::expect_ok(device.api->describe(device.plugin, &info));
  EXPECT_EQ(std::string(info.name.data), "torchscript");
  EXPECT_THAT(info.build_id.data, HasSubstr("torch 2."));
  EXPECT_EQ(info.device_count, 1u);
  const ltc_device_args args = {.struct_size = sizeof(args), .ordinal = 1};
  ltc_device* other = nullptr;
  EXPECT_EQ(code_of(Status(device.api->device_open(device.plugin, &args, &device.info, &other))), LTC_NOT_FOUND);
}

TEST_F(TorchscriptTest, TransfersWholeAndInPart) {
  ltc_buffer* buffer = floats({2, 2}, {1, 2, 3, 4});
  const float nine = 9;
  EXPECT_FALSE(device.write(buffer, 8, &nine, 4));
  EXPECT_THAT(device.download<float>(buffer, 4), ElementsAre(1, 2, 9, 4));
  float part[2];
  EXPECT_FALSE(device.read(buffer, 4, part, 8));
  EXPECT_THAT(part, ElementsAre(2, 9));

  ltc_buffer* copy = floats({2}, {0, 0});
  const ltc_transfer_args args = {.struct_size = sizeof(args),
                                  .direction = LTC_ON_DEVICE,
                                  .buffer = copy,
                                  .size_bytes = 8,
                                  .source = buffer,
                                  .source_offset_bytes = 8};
  Device::expect_ok(device.api->transfer(device.device, &args, nullptr));
  EXPECT_THAT(device.download<float>(copy, 2), ElementsAre(9, 4));
  device.api->buffer_destroy(copy);
  device.api->buffer_destroy(buffer);
}

TEST_F(TorchscriptTest, RefusesBadTransfers) {
  ltc_buffer* buffer = floats({2}, {1, 2});
  float data[4] = {};
  const Status past = device.write(buffer, 4, data, 8);
  EXPECT_EQ(code_of(past), LTC_INVALID_ARGUMENT);
  EXPECT_THAT(past->message, HasSubstr("8 bytes at offset 4"));
  EXPECT_EQ(code_of(device.read(buffer, UINT64_MAX, data, 8)), LTC_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(device.write(buffer, 0, data, 8, 1u << 7)), LTC_UNSUPPORTED);
  EXPECT_THAT(device.download<float>(buffer, 2), ElementsAre(1, 2));
  device.api->buffer_destroy(buffer);
}

TEST_F(TorchscriptTest, ClaimsWhatItCanRun) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 2}), p = g.scalar(LTC_F64), seed = g.scalar(LTC_I64), offset = g.scalar(LTC_I64);
  g.node("aten::mm", {x, x}, {}, LTC_F32, {2, 2});
  g.node("aten::no_such_op", {x}, {}, LTC_F32, {2, 2});
  g.node("aten::add_.Tensor", {x, x}, {{"alpha", int64_t{1}}}, LTC_F32, {2, 2});
  g.node("aten::bernoulli.p", {x, p}, {}, LTC_F32, {2, 2});
  g.node("aten::nonzero", {x}, {}, LTC_I64, {4, 2});
  g.node("aten::transpose.int", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}}, LTC_F32, {2, 2});
  g.node("aten::item", {x}, {}, LTC_F32, {});
  g.node("ltc::philox", {seed, offset}, {{"size", std::vector<int64_t>{4}}, Attr::dtype(LTC_F32)}, LTC_F32, {4});
  g.node("aten::mm", {x}, {}, LTC_F32, {2, 2});
  g.node("aten::as_strided", {x}, {{"size", std::vector<int64_t>{2}}, {"stride", std::vector<int64_t>{1}}}, LTC_F32, {2});
  EXPECT_THAT(device.claims(g.finish({})), ElementsAre(1, 0, 1, 0, 0, 1, 0, 1, 0, 1));
}

TEST_F(TorchscriptTest, OneExecutableServesManyScalars) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3}), alpha = g.scalar(LTC_F64), y = g.param(LTC_F32, {3});
  const uint32_t sum = g.node("aten::add.Tensor", {x, y, alpha}, {}, LTC_F32, {3});
  std::string text;
  ltc_executable* executable = device.build(g.finish({sum}), &text);
  EXPECT_THAT(text, HasSubstr("aten::add"));
  EXPECT_THAT(text, HasSubstr("Float(3"));
  EXPECT_THAT(text, HasSubstr("model.py:12"));
  const std::vector<ltc_buffer*> inputs = {floats({3}, {1, 2, 3}), floats({3}, {10, 20, 30})};
  for (double a : {1.0, 2.0, 0.5}) {
    std::vector<ltc_buffer*> out(1);
    ASSERT_FALSE(device.execute(executable, inputs, {number(a)}, out));
    const float f = static_cast<float>(a);
    EXPECT_THAT(device.download<float>(out[0], 3), ElementsAre(1 + 10 * f, 2 + 20 * f, 3 + 30 * f));
    device.api->buffer_destroy(out[0]);
  }
  EXPECT_THAT(device.download<float>(inputs[0], 3), ElementsAre(1, 2, 3));
  for (ltc_buffer* b : inputs) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, NumbersAreWeakInPromotion) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2}), s = g.scalar(LTC_F64), flag = g.scalar(LTC_BOOL);
  const uint32_t y = g.node("aten::mul.Tensor", {x, s}, {}, LTC_F32, {2});
  const uint32_t z = g.node("aten::add.Tensor", {s, y}, {{"alpha", int64_t{1}}}, LTC_F32, {2});
  const uint32_t w = g.node("aten::mul.Tensor", {z, flag}, {}, LTC_F32, {2});
  ltc_buffer* in = floats({2}, {1, 2});
  EXPECT_THAT(run(g.finish({w}), {in}, {number(2.5), integer(1)})[0], ElementsAre(5, 7.5));
  device.api->buffer_destroy(in);
}

// float64 operands need all of a number that float32 ones see rounded.
TEST_F(TorchscriptTest, NumbersKeepTheirPrecision) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {1}), y = g.param(LTC_F64, {1}), i = g.param(LTC_I64, {1}), s = g.scalar(LTC_F64);
  const std::vector<Attr> alpha = {{"alpha", int64_t{1}}};
  const std::vector<uint32_t> sums = {g.node("aten::add.Tensor", {x, s}, alpha, LTC_F32, {1}),
                                      g.node("aten::add.Tensor", {y, s}, alpha, LTC_F64, {1}),
                                      g.node("aten::add.Tensor", {i, s}, alpha, LTC_F32, {1})};
  ltc_executable* executable = device.build(g.finish(sums));
  ltc_buffer* inputs[] = {floats({1}, {1}), device.upload<double>(LTC_F64, {1}, {1}), device.upload<int64_t>(LTC_I64, {1}, {1})};
  std::vector<ltc_buffer*> out(3);
  ASSERT_FALSE(device.execute(executable, {inputs[0], inputs[1], inputs[2]}, {number(0.1)}, out));
  EXPECT_THAT(device.download<float>(out[0], 1), ElementsAre(1.1f));
  EXPECT_THAT(device.download<double>(out[1], 1), ElementsAre(1.1));
  EXPECT_THAT(device.download<float>(out[2], 1), ElementsAre(1.1f));
  for (ltc_buffer* b : inputs) device.api->buffer_destroy(b);
  for (ltc_buffer* b : out) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, IntegerParamsServeFloatArguments) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 3}), eps = g.scalar(LTC_I64);
  const uint32_t out = g.value(LTC_F32, {2, 3}), mean = g.value(LTC_F32, {2, 1});
  g.node("aten::native_layer_norm", {x, LTC_NONE, LTC_NONE, eps}, {{"normalized_shape", std::vector<int64_t>{3}}},
         {out, mean, LTC_NONE});
  ltc_buffer* in = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto results = run(g.finish({out, mean}), {in}, {integer(1)});
  EXPECT_THAT(results[1], ElementsAre(2, 5));
  EXPECT_NEAR(results[0][0], -1 / std::sqrt(1 + 2.0 / 3), 1e-6);
  device.api->buffer_destroy(in);
}

TEST_F(TorchscriptTest, ListsOfTensors) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {1, 2}), y = g.param(LTC_F32, {2, 2}), i = g.param(LTC_I64, {2});
  const uint32_t cat = g.node("aten::cat", {x, y, x}, {{"tensors.count", int64_t{3}}, {"dim", int64_t{0}}}, LTC_F32, {4, 2});
  const uint32_t picked = g.node("aten::index.Tensor", {cat, LTC_NONE, i}, {{"indices.count", int64_t{2}}}, LTC_F32, {4, 2});
  const uint32_t left = g.value(LTC_F32, {3, 2}), right = g.value(LTC_F32, {1, 2});
  g.node("aten::split_with_sizes", {picked}, {{"split_sizes", std::vector<int64_t>{3, 1}}, {"dim", int64_t{0}}}, {left, right});
  ltc_buffer* inputs[] = {floats({1, 2}, {1, 2}), floats({2, 2}, {3, 4, 5, 6}), device.upload<int64_t>(LTC_I64, {2}, {1, 0})};
  const auto results = run(g.finish({left, right}), {inputs[0], inputs[1], inputs[2]});
  EXPECT_THAT(results[0], ElementsAre(2, 1, 4, 3, 6, 5));
  EXPECT_THAT(results[1], ElementsAre(2, 1));
  for (ltc_buffer* b : inputs) device.api->buffer_destroy(b);
}

std::vector<Attr> convolution_attrs() {
  const std::vector<int64_t> one = {1, 1}, zero = {0, 0};
  return {{"stride", one},          {"padding", zero},     {"dilation", one}, {"transposed", LTC_ATTR_BOOL, {0}},
          {"output_padding", zero}, {"groups", int64_t{1}}};
}

TEST_F(TorchscriptTest, AbsentOperandsAndMaskedOutputs) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {1, 1, 2, 2}), w = g.param(LTC_F32, {1, 1, 1, 1});
  const uint32_t y = g.node("aten::convolution", {x, w, LTC_NONE}, convolution_attrs(), LTC_F32, {1, 1, 2, 2});
  auto attrs = convolution_attrs();
  attrs.push_back({"bias_sizes", LTC_ATTR_NONE, {}});
  attrs.push_back({"output_mask", std::vector<int64_t>{0, 1, 0}});
  const uint32_t dw = g.value(LTC_F32, {1, 1, 1, 1});
  g.node("aten::convolution_backward", {y, x, w}, attrs, {LTC_NONE, dw, LTC_NONE});
  ltc_buffer *a = floats({1, 1, 2, 2}, {1, 2, 3, 4}), *b = floats({1, 1, 1, 1}, {2});
  const auto results = run(g.finish({y, dw}), {a, b});
  EXPECT_THAT(results[0], ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(results[1], ElementsAre(60));
  device.api->buffer_destroy(a);
  device.api->buffer_destroy(b);
}

TEST_F(TorchscriptTest, LargeConvolutionsAreChannelsLast) {
  const auto text_for = [&](int64_t side) {
    GraphBuilder g;
    const uint32_t x = g.param(LTC_F32, {2, 4, side, side}), w = g.param(LTC_F32, {8, 4, 1, 1});
    const uint32_t y = g.node("aten::convolution", {x, w, LTC_NONE}, convolution_attrs(), LTC_F32, {2, 8, side, side});
    const uint32_t z = g.node("aten::relu", {y}, {}, LTC_F32, {2, 8, side, side});
    const uint32_t v = g.param(LTC_F32, {8, 8, 1, 1});
    std::string text;
    const auto graph =
        g.finish({g.node("aten::convolution", {z, v, LTC_NONE}, convolution_attrs(), LTC_F32, {2, 8, side, side})});
    device.api->executable_destroy(device.build(graph, &text));
    return text;
  };
  const auto conversions = [](const std::string& text) {
    int count = 0;
    for (size_t at = 0; (at = text.find("aten::contiguous", at)) != text.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(conversions(text_for(64)), 3);  // the image and both weights; what is between stays as it is
  EXPECT_EQ(conversions(text_for(8)), 0);
}

TEST_F(TorchscriptTest, StridedOpsSeeRowMajorContents) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 3});
  const uint32_t t = g.node("aten::permute", {x}, {{"dims", std::vector<int64_t>{1, 0}}}, LTC_F32, {3, 2});  // 1 4 2 5 3 6
  const uint32_t tail = g.node("aten::slice.Tensor", {t}, {{"dim", int64_t{0}}, {"start", int64_t{1}}, {"end", int64_t{3}}},
                               LTC_F32, {2, 2});  // 2 5 3 6
  const std::vector<Attr> every_second = {
      {"size", std::vector<int64_t>{2}}, {"stride", std::vector<int64_t>{2}}, {"storage_offset", int64_t{1}}};
  const uint32_t odd = g.node("aten::as_strided", {tail}, every_second, LTC_F32, {2});
  const uint32_t twice = g.node("aten::add.Tensor", {odd, odd}, {{"alpha", int64_t{1}}}, LTC_F32, {2});
  const uint32_t put = g.node("aten::as_strided_scatter", {tail, twice}, every_second, LTC_F32, {2, 2});
  const uint32_t flat = g.node("aten::view", {t}, {{"size", std::vector<int64_t>{6}}}, LTC_F32, {6});
  ltc_buffer* in = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto results = run(g.finish({odd, put, flat}), {in});
  EXPECT_THAT(results[0], ElementsAre(5, 6));
  EXPECT_THAT(results[1], ElementsAre(2, 10, 3, 12));
  EXPECT_THAT(results[2], ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(device.download<float>(in, 6), ElementsAre(1, 2, 3, 4, 5, 6));
  device.api->buffer_destroy(in);
}

TEST_F(TorchscriptTest, ScattersIntoDeadBasesAndReinterpretsTransposedOnes) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 2}), one = g.param(LTC_F32, {2});
  const uint32_t base = g.node("aten::neg", {x}, {}, LTC_F32, {2, 2});
  const std::vector<Attr> diagonal = {{"size", std::vector<int64_t>{2}}, {"stride", std::vector<int64_t>{3}}};
  const uint32_t put = g.node("aten::as_strided_scatter", {base, one}, diagonal, LTC_F32, {2, 2});
  const uint32_t t = g.node("aten::permute", {x}, {{"dims", std::vector<int64_t>{1, 0}}}, LTC_F32, {2, 2});
  const uint32_t wide = g.node("aten::view.dtype", {t}, {Attr::dtype(LTC_I64)}, LTC_I64, {2, 1});
  const uint32_t back = g.node("aten::view.dtype", {wide}, {Attr::dtype(LTC_F32)}, LTC_F32, {2, 2});
  ltc_buffer *in = floats({2, 2}, {1, 2, 3, 4}), *ones = floats({2}, {1, 1});
  const auto results = run(g.finish({put, back}), {in, ones});
  EXPECT_THAT(results[0], ElementsAre(1, -2, -3, 1));
  EXPECT_THAT(results[1], ElementsAre(1, 3, 2, 4));
  device.api->buffer_destroy(in);
  device.api->buffer_destroy(ones);
}

TEST_F(TorchscriptTest, LoopsReadTheContentsOfNegativeViews) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3});
  const uint32_t minus = g.node("aten::_neg_view", {x}, {}, LTC_F32, {3});
  const uint32_t twice = g.node("aten::mul.Tensor", {minus, minus}, {}, LTC_F32, {3});
  const uint32_t sum = g.node("aten::add.Tensor", {twice, minus}, {{"alpha", int64_t{1}}}, LTC_F32, {3});
  ltc_buffer* in = floats({3}, {1, 2, 3});
  EXPECT_THAT(run(g.finish({sum}), {in})[0], ElementsAre(0, 2, 6));
  device.api->buffer_destroy(in);
}

TEST_F(TorchscriptTest, BuffersAreValues) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 2});
  const uint32_t t = g.node("aten::transpose.int", {x}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}}, LTC_F32, {2, 2});
  const uint32_t e = g.node("aten::expand", {x}, {{"size", std::vector<int64_t>{2, 2, 2}}}, LTC_F32, {2, 2, 2});
  ltc_executable* executable = device.build(g.finish({t, e}));
  ltc_buffer* in = floats({2, 2}, {1, 2, 3, 4});
  std::vector<ltc_buffer*> out(2);
  ASSERT_FALSE(device.execute(executable, {in}, {}, out));
  const float nine = 9;
  EXPECT_FALSE(device.write(in, 0, &nine, 4));
  EXPECT_FALSE(device.write(out[0], 4, &nine, 4));
  EXPECT_THAT(device.download<float>(in, 4), ElementsAre(9, 2, 3, 4));
  EXPECT_THAT(device.download<float>(out[0], 4), ElementsAre(1, 9, 2, 4));
  EXPECT_THAT(device.download<float>(out[1], 8), ElementsAre(1, 2, 3, 4, 1, 2, 3, 4));
  for (ltc_buffer* b : {in, out[0], out[1]}) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, DonatedMemoryIsReused) {
  const int64_t n = 1 << 20;
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {n}), s = g.scalar(LTC_F64);
  uint32_t y = x;
  for (int i = 0; i < 4; ++i) y = g.node("aten::add.Tensor", {y, s}, {{"alpha", int64_t{1}}}, LTC_F32, {n});
  ltc_executable* executable = device.build(g.finish({y}));
  ltc_buffer* in = floats({n}, std::vector<float>(static_cast<size_t>(n), 1));
  const uint64_t before = memory().in_use_bytes;
  std::vector<ltc_buffer*> out(1);
  ASSERT_FALSE(device.execute(executable, {in}, {number(2)}, out, {1}));
  EXPECT_EQ(memory().in_use_bytes, before);
  EXPECT_THAT(device.download<float>(out[0], 1), ElementsAre(9));
  std::vector<ltc_buffer*> kept(1);
  ASSERT_FALSE(device.execute(executable, {out[0]}, {number(1)}, kept, {0}));
  EXPECT_THAT(device.download<float>(out[0], 1), ElementsAre(9));
  EXPECT_THAT(device.download<float>(kept[0], 1), ElementsAre(13));
  EXPECT_EQ(memory().in_use_bytes, 2 * before);
  EXPECT_GE(memory().peak_bytes, 2 * before);
  device.api->buffer_destroy(out[0]);
  device.api->buffer_destroy(kept[0]);
  EXPECT_EQ(memory().in_use_bytes, 0u);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, BadArgumentsConsumeNothing) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2}), y = g.param(LTC_F32, {2});
  ltc_executable* executable = device.build(g.finish({g.node("aten::mul.Tensor", {x, y}, {}, LTC_F32, {2})}));
  ltc_buffer *a = floats({2}, {1, 2}), *b = floats({3}, {1, 2, 3});
  std::vector<ltc_buffer*> out(1);
  EXPECT_EQ(code_of(device.execute(executable, {a}, {}, out)), LTC_INVALID_ARGUMENT);
  EXPECT_EQ(code_of(device.execute(executable, {a, a}, {}, out, {1, 0})), LTC_INVALID_ARGUMENT);
  const Status wrong = device.execute(executable, {a, b}, {}, out, {1, 1});
  EXPECT_EQ(code_of(wrong), LTC_INVALID_ARGUMENT);
  EXPECT_THAT(wrong->message, HasSubstr("[3]"));
  EXPECT_EQ(out[0], nullptr);
  EXPECT_THAT(device.download<float>(a, 2), ElementsAre(1, 2));
  ASSERT_FALSE(device.execute(executable, {a, a}, {}, out));
  for (ltc_buffer* buffer : {a, b, out[0]}) device.api->buffer_destroy(buffer);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, FailedRunsReportAndRecover) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3}), i = g.param(LTC_I64, {1});
  const uint32_t y = g.node("aten::neg", {x}, {}, LTC_F32, {3});
  const uint32_t z = g.node("aten::index_select", {y, i}, {{"dim", int64_t{0}}}, LTC_F32, {1});
  ltc_executable* executable = device.build(g.finish({z}));
  ltc_buffer *in = floats({3}, {1, 2, 3}), *good = device.upload<int64_t>(LTC_I64, {1}, {2});
  ltc_buffer* bad = device.upload<int64_t>(LTC_I64, {1}, {7});
  std::vector<ltc_buffer*> out(1);
  Status event;
  ASSERT_FALSE(device.execute(executable, {in, bad}, {}, out, {0, 1}, &event));  // `bad` is gone
  ASSERT_TRUE(event);
  EXPECT_EQ(event->code, LTC_OUT_OF_RANGE) << event->message;
  EXPECT_EQ(event->node, 1u);
  EXPECT_THAT(event->message, HasSubstr("aten::index_select"));
  float unspecified;
  EXPECT_FALSE(device.read(out[0], 0, &unspecified, 4));
  device.api->buffer_destroy(out[0]);

  event.reset();
  ASSERT_FALSE(device.execute(executable, {in, good}, {}, out, {}, &event));
  EXPECT_FALSE(event);
  EXPECT_THAT(device.download<float>(out[0], 1), ElementsAre(-3));
  for (ltc_buffer* b : {in, good, out[0]}) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, UnwantedEventsDelayTheirError) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3}), i = g.param(LTC_I64, {1});
  ltc_executable* executable =
      device.build(g.finish({g.node("aten::index_select", {x, i}, {{"dim", int64_t{0}}}, LTC_F32, {1})}));
  ltc_buffer *in = floats({3}, {1, 2, 3}), *bad = device.upload<int64_t>(LTC_I64, {1}, {7});
  ltc_buffer* good = device.upload<int64_t>(LTC_I64, {1}, {0});
  std::vector<ltc_buffer*> lost(1), out(1);
  ASSERT_FALSE(device.execute(executable, {in, bad}, {}, lost));
  Status event;
  ASSERT_FALSE(device.execute(executable, {in, good}, {}, out, {}, &event));
  EXPECT_EQ(code_of(event), LTC_OUT_OF_RANGE);
  EXPECT_THAT(device.download<float>(out[0], 1), ElementsAre(1));
  for (ltc_buffer* b : {in, bad, good, lost[0], out[0]}) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

// While nobody waits, fewer threads compute; and a product's pieces are its shapes'.
class ThreadsTest : public TorchscriptTest {
 protected:
  static std::vector<float> noise(size_t count) {
    std::mt19937 generator;
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
  }
  // The results of `graph` on noise, the same whether the host waits or not.
  std::vector<std::vector<float>> run_both_ways(const ltc_graph& graph) {
    std::vector<ltc_buffer*> inputs;
    for (size_t i = 0; i < graph.param_count; ++i) {
      const ltc_type& type = *graph.types[graph.params[i]->value];
      const std::vector<int64_t> sizes(type.sizes, type.sizes + type.rank);
      const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
      inputs.push_back(floats(sizes, noise(static_cast<size_t>(count))));
    }
    is_awaited = false;
    const auto alone = run(graph, inputs);
    is_awaited = true;
    EXPECT_EQ(run(graph, inputs), alone);
    for (ltc_buffer* input : inputs) device.api->buffer_destroy(input);
    return alone;
  }
};

TEST_F(ThreadsTest, ProductsInPieces) {
  const std::vector<std::vector<int64_t>> shapes = {
      {512, 128, 384}, {100, 1000, 37}, {37, 1000, 300}, {3, 50, 2}, {64, 2500, 129}};
  for (const auto& shape : shapes) {
    const int64_t rows = shape[0], inner = shape[1], columns = shape[2];
    GraphBuilder g;
    const uint32_t a = g.param(LTC_F32, {rows, inner}), b = g.param(LTC_F32, {columns, inner}),
                   bias = g.param(LTC_F32, {columns});
    const uint32_t t = g.node("aten::t", {b}, {}, LTC_F32, {inner, columns});
    const uint32_t plain = g.node("aten::mm", {a, t}, {}, LTC_F32, {rows, columns});
    const uint32_t biased = g.node("aten::addmm", {bias, a, t}, {{"beta", 1.0}, {"alpha", 1.0}}, LTC_F32, {rows, columns});
    const uint32_t added = g.node("aten::addmm", {plain, a, t}, {{"beta", 1.0}, {"alpha", 2.0}}, LTC_F32, {rows, columns});
    const auto results = run_both_ways(g.finish({plain, biased, added}));
    const std::vector<float> x = noise(static_cast<size_t>(std::max(rows, columns) * inner));
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k) sum += double{x[i * inner + k]} * x[j * inner + k];
        const auto at = static_cast<size_t>(i * columns + j);
        const double error = 1e-4 * static_cast<double>(inner);
        ASSERT_NEAR(results[0][at], sum, error) << i << ", " << j;
        ASSERT_NEAR(results[1][at], sum + x[j], error) << i << ", " << j;
        ASSERT_NEAR(results[2][at], 3 * sum, 3 * error) << i << ", " << j;
      }
    }
  }
}

TEST_F(ThreadsTest, AttentionAndReductions) {
  const std::vector<int64_t> heads = {2, 4, 64, 32}, wide = {64, 4096};
  GraphBuilder g;
  const uint32_t q = g.param(LTC_F32, heads), x = g.param(LTC_F32, wide);
  const uint32_t seen = g.value(LTC_F32, heads), sums = g.value(LTC_F32, {2, 4, 64});
  g.node("aten::_scaled_dot_product_flash_attention_for_cpu", {q, q, q, LTC_NONE},
         {{"dropout_p", 0.0}, {"is_causal", int64_t{0}}, {"scale", 0.2}}, std::vector<uint32_t>{seen, sums});
  const uint32_t total = g.node("aten::sum", {x}, {}, LTC_F32, {});
  const uint32_t rows = g.node("aten::sum.dim_IntList", {x}, {{"dim", std::vector<int64_t>{1}}}, LTC_F32, {64});
  const uint32_t shares = g.node("aten::_softmax", {x}, {{"dim", int64_t{1}}, {"half_to_float", int64_t{0}}}, LTC_F32, wide);
  run_both_ways(g.finish({seen, sums, total, rows, shares}));
}

// Sequences are pieces of the work; a mask, which is ATen's to deal with, is not given.
TEST_F(ThreadsTest, EncoderLayer) {
  const std::vector<int64_t> sizes = {5, 64, 64};
  for (const int64_t norm_first : {0, 1}) {
    GraphBuilder g;
    const uint32_t x = g.param(LTC_F32, sizes), in = g.param(LTC_F32, {192, 64}), in_bias = g.param(LTC_F32, {192}),
                   square = g.param(LTC_F32, {64, 64}), vector = g.param(LTC_F32, {64}), up = g.param(LTC_F32, {256, 64}),
                   up_bias = g.param(LTC_F32, {256}), down = g.param(LTC_F32, {64, 256});
    const std::vector<uint32_t> operands = {x,      in,     in_bias, square,  vector, vector, vector,
                                            vector, vector, up,      up_bias, down,   vector, LTC_NONE};
    const uint32_t y = g.node("aten::_transformer_encoder_layer_fwd", operands,
                              {{"embed_dim", int64_t{64}},
                               {"num_heads", int64_t{2}},
                               {"use_gelu", norm_first},
                               {"norm_first", norm_first},
                               {"eps", 1e-5}},
                              LTC_F32, sizes);
    run_both_ways(g.finish({y}));
  }
}

TEST_F(TorchscriptTest, LoweringBlamesTheNode) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2});
  const uint32_t y = g.node("aten::neg", {x}, {}, LTC_F32, {2});
  const ltc_graph& graph = g.finish({g.node("vendor::op", {y}, {}, LTC_F32, {2})});
  const ltc_lower_args args = {sizeof(args), nullptr, &graph};
  ltc_program* program = nullptr;
  const Status status(device.api->lower(device.device, &args, &program));
  ASSERT_EQ(code_of(status), LTC_UNSUPPORTED);
  EXPECT_EQ(status->node, 1u);
  EXPECT_EQ(program, nullptr);
}

class PhiloxTest : public TorchscriptTest {
 protected:
  template <typename T>
  std::vector<T> draw(ltc_dtype dtype, int64_t count, int64_t seed, int64_t offset) {
    GraphBuilder g;
    const uint32_t s = g.scalar(LTC_I64), o = g.scalar(LTC_I64);
    std::string text;
    ltc_executable* executable = device.build(
        g.finish({g.node("ltc::philox", {s, o}, {{"size", std::vector<int64_t>{count}}, Attr::dtype(dtype)}, dtype, {count})}),
        &text);
    EXPECT_THAT(text, HasSubstr("philox"));
    std::vector<ltc_buffer*> out(1);
    Device::expect_ok(device.execute(executable, {}, {integer(seed), integer(offset)}, out).release());
    auto values = device.download<T>(out[0], static_cast<size_t>(count));
    device.api->buffer_destroy(out[0]);
    device.api->executable_destroy(executable);
    return values;
  }
};

// The known answer of Random123 for counter 0 and key 0.
TEST_F(PhiloxTest, KnownAnswers) {
  EXPECT_THAT(draw<uint32_t>(LTC_I32, 4, 0, 0), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(draw<uint64_t>(LTC_I64, 2, 0, 0), ElementsAre(0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c));
  EXPECT_THAT(draw<float>(LTC_F32, 1, 0, 0), ElementsAre(static_cast<float>(0x6627e8) * 0x1p-24f));
  EXPECT_THAT(draw<double>(LTC_F64, 1, 0, 0), ElementsAre(static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53));
}

// An element depends on seed, offset and index alone: not on the size drawn, nor on how threads share the work.
TEST_F(PhiloxTest, ElementsAreIndependentOfTheSize) {
  const int64_t seed = -1234567890123, offset = 0xFFFFFFF0;  // the counter's low word overflows
  const auto many = draw<uint32_t>(LTC_I32, 300007, seed, offset);
  for (int64_t count : {1, 3, 5, 63, 64, 65, 1001}) {
    const auto few = draw<uint32_t>(LTC_I32, count, seed, offset);
    EXPECT_THAT(few, ElementsAreArray(many.begin(), many.begin() + count)) << count;
  }
  const auto later = draw<uint32_t>(LTC_I32, 100, seed, offset + 50000);
  EXPECT_THAT(later, ElementsAreArray(many.begin() + 200000, many.begin() + 200100));
  const auto wide = draw<uint64_t>(LTC_I64, 1001, seed, offset);
  for (size_t i : {0u, 1u, 500u, 1000u}) EXPECT_EQ(wide[i], many[2 * i] | uint64_t{many[2 * i + 1]} << 32);
}

}  // namespace
}  // namespace ltc::testing
