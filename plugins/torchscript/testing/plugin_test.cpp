// Drives the built plugin through the C ABI alone.
#include "torchscript/testing/plugin_test.h"

#include <cmath>
#include <cstdlib>

namespace ltc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(TorchscriptEntry, RefusesVersionsItDoesNotSpeak) {
  for (const auto& [oldest, newest] : {std::pair<ltc_version, ltc_version>{{2, 0}, {2, 3}}, {{0, 1}, {0, 9}}, {{1, 1}, {1, 4}}}) {
    ltc_entry_args args = {.struct_size = sizeof(args), .host = &host_api(), .oldest = oldest, .newest = newest};
    EXPECT_FALSE(entry_point()(&args));
    EXPECT_EQ(args.oldest.major, 1u);
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

// A libtorch without CUDA, or one with CUDA and no device; cuda_test.cpp has a stub of one with devices.
TEST(TorchscriptEntry, SaysWhyThereIsNoCuda) {
  g_options = {{"cuda", "yes"}};
  try {
    const Entered entered;
    ADD_FAILURE() << "took cuda=yes";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cuda is 'yes'; it may be 0 or 1");
  }
  g_options = {{"cuda", "1"}};
  const Entered entered;
  g_options.clear();
  const ltc_entry_args& args = entered.args;
  ltc_plugin_info info = {sizeof(info)};
  Device::expect_ok(args.api->describe(args.plugin, &info));
  if (!LTC_LIBTORCH_HAS_CUDA) {
    EXPECT_EQ(info.device_count, 0u);
    EXPECT_THAT(info.why_no_device.data,
                ::testing::AllOf(HasSubstr("the option cuda=1, but this libtorch (2."), HasSubstr("without CUDA")));
  } else if (info.device_count == 0) {
    EXPECT_THAT(info.why_no_device.data, HasSubstr("the option cuda=1, but libtorch finds no CUDA device"));
  }
  args.api->plugin_close(args.plugin);
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

TEST_F(TorchscriptTest, EffortChangesNoResult) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 3}), w = g.param(LTC_F32, {3, 2}), factor = g.scalar(LTC_F64);
  const uint32_t scaled = g.node("aten::mul.Tensor", {x, factor}, {}, LTC_F32, {2, 3});
  const uint32_t relu = g.node("aten::relu", {scaled}, {}, LTC_F32, {2, 3});
  const uint32_t product = g.node("aten::mm", {relu, w}, {}, LTC_F32, {2, 2});
  const ltc_graph& graph = g.finish({product, relu});
  for (const uint32_t effort : {0u, 1u, 3u}) {
    ltc_executable* executable = device.build(graph, nullptr, effort);
    const std::vector<ltc_buffer*> inputs = {floats({2, 3}, {1, -2, 3, 4, 5, -6}), floats({3, 2}, {1, 2, 3, 4, 5, 6})};
    std::vector<ltc_buffer*> outputs(2);
    EXPECT_FALSE(device.execute(executable, inputs, {number(2)}, outputs));
    EXPECT_THAT(device.download<float>(outputs[0], 4), ElementsAre(32, 40, 38, 56)) << effort;
    EXPECT_THAT(device.download<float>(outputs[1], 6), ElementsAre(2, 0, 6, 8, 10, 0)) << effort;
    for (ltc_buffer* buffer : {inputs[0], inputs[1], outputs[0], outputs[1]}) device.api->buffer_destroy(buffer);
    device.api->executable_destroy(executable);
  }
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
    for (size_t at = 0; (at = text.find("ltc_torchscript::in_format", at)) != text.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(conversions(text_for(64)), 1);  // the image; weights are packed, and what is between stays as it is
  EXPECT_EQ(conversions(text_for(8)), 0);
}

TEST_F(TorchscriptTest, SumsOfRowsJoinWhatTheyAddUp) {
  const auto text_for = [&](std::vector<int64_t> sizes, std::vector<int64_t> dims, std::vector<int64_t> result) {
    GraphBuilder g;
    const uint32_t x = g.param(LTC_F32, sizes), y = g.node("aten::tanh", {x}, {}, LTC_F32, sizes);
    std::string text;
    device.api->executable_destroy(
        device.build(g.finish({g.node("aten::sum.dim_IntList", {y}, {{"dim", dims}}, LTC_F32, result)}), &text));
    return text;
  };
  const auto holds = [](const std::string& part) { return ::testing::HasSubstr(part); };
  EXPECT_THAT(text_for({2048, 4, 16}, {2}, {2048, 4}), holds("sums of rows of 16, r"));
  EXPECT_THAT(text_for({2048, 4, 16}, {-1, 1}, {2048}), holds("sums of rows of 64, r"));
  EXPECT_THAT(text_for({8, 4, 16}, {2}, {8, 4}), holds("sum: its operand stays in the cache"));
  EXPECT_THAT(text_for({8, 4, 16}, {0}, {4, 16}), holds("sum: other dims than the last ones"));
  EXPECT_THAT(text_for({8, 17}, {1}, {8}), holds("sum: rows of no whole vectors"));
  EXPECT_THAT(text_for({2, 8, 4, 16}, {3}, {2, 8, 4}), holds("sum: an image"));
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

TEST_F(TorchscriptTest, ARunThatRefusesAValueConsumesNothing) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3}), i = g.param(LTC_I64, {1});
  const uint32_t y = g.node("aten::neg", {x}, {}, LTC_F32, {3});
  const uint32_t z = g.node("aten::index_select", {y, i}, {{"dim", int64_t{0}}}, LTC_F32, {1});
  ltc_executable* executable = device.build(g.finish({z}));
  ltc_buffer *in = floats({3}, {1, 2, 3}), *good = device.upload<int64_t>(LTC_I64, {1}, {2});
  ltc_buffer* bad = device.upload<int64_t>(LTC_I64, {1}, {7});
  std::vector<ltc_buffer*> out(1);
  Status event;
  const Status refusal = device.execute(executable, {in, bad}, {}, out, {1, 1}, &event);
  EXPECT_FALSE(event);
  EXPECT_EQ(code_of(refusal), LTC_OUT_OF_RANGE);
  EXPECT_EQ(refusal->node, 1u);
  EXPECT_THAT(refusal->message, HasSubstr("index out of range"));  // the host names the op
  EXPECT_EQ(out[0], nullptr);
  EXPECT_THAT(device.download<float>(in, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(device.download<int64_t>(bad, 1), ElementsAre(7));

  ASSERT_FALSE(device.execute(executable, {in, good}, {}, out, {1, 0}, &event));
  EXPECT_FALSE(event);
  EXPECT_THAT(device.download<float>(out[0], 1), ElementsAre(-3));
  for (ltc_buffer* b : {good, bad, out[0]}) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, ARunThatFailsLateReportsInAnEvent) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3}, 0, 0), w = g.param(LTC_F32, {3});
  const uint32_t y = g.node("aten::neg", {x}, {}, LTC_F32, {3});
  const uint32_t z = g.node("aten::glu", {w}, {{"dim", int64_t{0}}}, LTC_F32, {1});  // has no half of three
  ltc_executable* executable = device.build(g.finish({y, z}));
  ltc_buffer *in = floats({3}, {1, 2, 3}), *odd = floats({3}, {1, 2, 3});
  std::vector<ltc_buffer*> lost(2);
  Status event;
  ASSERT_FALSE(device.execute(executable, {in, odd}, {}, lost, {1, 0}, &event));  // `in` is gone
  ASSERT_TRUE(event);
  EXPECT_EQ(event->node, 1u);
  EXPECT_THAT(event->message, HasSubstr("Halving dimension must be even"));
  float unspecified;
  EXPECT_FALSE(device.read(lost[0], 0, &unspecified, 4));
  for (ltc_buffer* b : {lost[0], lost[1], odd}) device.api->buffer_destroy(b);
  device.api->executable_destroy(executable);
}

TEST_F(TorchscriptTest, ARunWithoutTheMemoryConsumesNothing) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3}, 0, 0);
  const uint32_t y = g.node("aten::neg", {x}, {}, LTC_F32, {3});
  const int64_t times = int64_t{1} << 50;
  const uint32_t z = g.node("aten::repeat", {y}, {{"repeats", std::vector<int64_t>{times}}}, LTC_F32, {3 * times});
  ltc_executable* executable = device.build(g.finish({y, z}));
  ltc_buffer* in = floats({3}, {1, 2, 3});
  std::vector<ltc_buffer*> out(2);
  Status event;
  const Status refusal = device.execute(executable, {in}, {}, out, {1}, &event);
  EXPECT_FALSE(event);
  EXPECT_EQ(code_of(refusal), LTC_RESOURCE_EXHAUSTED);
  EXPECT_THAT(device.download<float>(in, 3), ElementsAre(1, 2, 3));
  device.api->buffer_destroy(in);
  device.api->executable_destroy(executable);
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

}  // namespace
}  // namespace ltc::testing
