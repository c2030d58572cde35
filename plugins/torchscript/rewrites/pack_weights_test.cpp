// Convolutions with packed weights: their results, and how long a buffer keeps a form.
#include <cmath>

#include "torchscript/testing/plugin_test.h"

namespace ltc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Case {
  const char* name;
  std::vector<int64_t> images, weights;
  int64_t stride, padding, dilation, groups;
  bool has_bias, has_norm;
  const char* op;
};

int64_t product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// Numbers that differ from seed to seed.
std::vector<float> numbers(int64_t count, int seed, float least = -1) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = least + static_cast<float>((i * 7919 + static_cast<size_t>(seed) * 104729) % 1000) / 500;
  }
  return values;
}

class PackedConvolution {
 public:
  explicit PackedConvolution(const Case& of, uint32_t weight_alias = LTC_NONE) : case_(of) {
    const auto both = [](int64_t value) { return std::vector<int64_t>{value, value}; };
    const std::vector<Attr> attrs = {{"stride", both(of.stride)},     {"padding", both(of.padding)},
                                     {"dilation", both(of.dilation)}, {"transposed", LTC_ATTR_BOOL, {0}},
                                     {"output_padding", both(0)},     {"groups", of.groups}};
    const auto side = [&](size_t i) {
      return (of.images[i] + 2 * of.padding - of.dilation * (of.weights[i] - 1) - 1) / of.stride + 1;
    };
    sizes = {of.images[0], of.weights[0], side(2), side(3)};
    const uint32_t x = g_.param(LTC_F32, of.images), w = g_.param(LTC_F32, of.weights, 0, weight_alias);
    const uint32_t b = of.has_bias ? g_.param(LTC_F32, {channels()}) : LTC_NONE;
    uint32_t y = g_.node("aten::convolution", {x, w, b}, attrs, LTC_F32, sizes);
    if (of.has_norm) {
      std::vector<uint32_t> inputs = {y};
      for (int i = 0; i < 4; ++i) inputs.push_back(g_.param(LTC_F32, {channels()}));
      std::vector<uint32_t> outputs = {g_.value(LTC_F32, sizes), g_.value(LTC_F32, {0}), g_.value(LTC_F32, {0})};
      g_.node("aten::native_batch_norm", inputs, {{"training", LTC_ATTR_BOOL, {0}}, {"momentum", 0.1}, {"eps", kEps}}, outputs);
      y = outputs[0];
    }
    graph = &g_.finish({y});
  }

  int64_t channels() const { return case_.weights[0]; }

  // Behind images and weight: bias; weight, bias, mean and variance of the batch norm.
  std::vector<std::vector<float>> vectors() const {
    std::vector<std::vector<float>> all;
    if (case_.has_bias) all.push_back(numbers(channels(), 3));
    for (int i = 0; case_.has_norm && i < 4; ++i) all.push_back(numbers(channels(), 4 + i, i == 3 ? 0.25F : -1));
    return all;
  }

  std::vector<float> expected(const std::vector<float>& x, const std::vector<float>& w) const {
    const auto& [images, weights] = std::pair(case_.images, case_.weights);
    std::vector<float> results;
    const int64_t own = weights[0] / case_.groups;
    for (int64_t n = 0; n < sizes[0]; ++n) {
      for (int64_t c = 0; c < sizes[1]; ++c) {
        for (int64_t i = 0; i < sizes[2] * sizes[3]; ++i) {
          double sum = 0;
          for (int64_t tap = 0; tap < product(weights) / weights[0]; ++tap) {
            const int64_t column = tap % weights[3], row = tap / weights[3] % weights[2], channel = tap / weights[3] / weights[2];
            const int64_t py = i / sizes[3] * case_.stride - case_.padding + row * case_.dilation,
                          px = i % sizes[3] * case_.stride - case_.padding + column * case_.dilation;
            if (py < 0 || px < 0 || py >= images[2] || px >= images[3]) continue;
            const int64_t from = c / own * weights[1] + channel;
            sum += double{x[static_cast<size_t>(((n * images[1] + from) * images[2] + py) * images[3] + px)]} *
                   w[static_cast<size_t>(c * product(weights) / weights[0] + tap)];
          }
          results.push_back(static_cast<float>(normed(sum, static_cast<size_t>(c))));
        }
      }
    }
    return results;
  }

  std::vector<int64_t> sizes;
  const ltc_graph* graph;

 private:
  static constexpr double kEps = 1e-3;

  double normed(double sum, size_t channel) const {
    const auto all = vectors();
    if (case_.has_bias) sum += all[0][channel];
    if (!case_.has_norm) return sum;
    const auto* norm = &all[case_.has_bias];
    return (sum - norm[2][channel]) / std::sqrt(norm[3][channel] + kEps) * norm[0][channel] + norm[1][channel];
  }

  const Case& case_;
  GraphBuilder g_;
};

const Case kCases[] = {
    {"one_dnn", {2, 16, 14, 14}, {32, 16, 3, 3}, 2, 1, 1, 1, true, true, "packed_convolution("},
    {"one_dnn_alone", {2, 16, 14, 14}, {32, 16, 3, 3}, 2, 1, 1, 1, false, false, "packed_convolution("},
    {"dilated", {2, 16, 14, 14}, {32, 16, 3, 3}, 1, 2, 2, 1, true, true, "packed_convolution("},
    {"groups", {2, 32, 24, 24}, {32, 8, 3, 3}, 1, 1, 1, 4, true, true, "packed_convolution("},
    {"depthwise", {2, 32, 24, 24}, {32, 1, 3, 3}, 1, 1, 1, 32, false, true, "packed_convolution("},
    {"winograd", {2, 16, 16, 16}, {32, 16, 3, 3}, 1, 1, 1, 1, true, true, "packed_winograd_convolution("},
    {"winograd_alone", {2, 16, 16, 16}, {48, 16, 3, 3}, 1, 1, 1, 1, false, false, "packed_winograd_convolution("},
    {"matrix", {9, 32, 2, 2}, {48, 32, 3, 3}, 1, 1, 1, 1, true, true, "convolution_by_matrix("},
    {"matrix_of_one_tap", {16, 64, 1, 1}, {64, 64, 3, 3}, 1, 1, 1, 1, false, true, "convolution_by_matrix("},
    {"matrix_of_some_taps", {16, 32, 3, 3}, {64, 32, 3, 3}, 3, 2, 2, 1, true, false, "convolution_by_matrix("},
};

class PackWeights : public TorchscriptTest, public ::testing::WithParamInterface<Case> {
 protected:
  void expect_close(const std::vector<float>& results, const std::vector<float>& expected) {
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      ASSERT_NEAR(results[i], expected[i], 2e-4 * (1 + std::abs(expected[i]))) << "element " << i;
    }
  }

  std::vector<float> run_once(ltc_executable* executable, const std::vector<ltc_buffer*>& inputs, size_t count) {
    std::vector<ltc_buffer*> outputs(1);
    const Status status = device.execute(executable, inputs, {}, outputs);
    EXPECT_FALSE(status) << status->message;
    const auto results = device.download<float>(outputs[0], count);
    device.api->buffer_destroy(outputs[0]);
    return results;
  }
};

TEST_P(PackWeights, results_follow_the_weights) {
  const Case& of = GetParam();
  const PackedConvolution convolution(of);
  std::string text;
  ltc_executable* const executable = device.build(*convolution.graph, &text);
  EXPECT_THAT(text, HasSubstr(std::string("ltc_torchscript::") + of.op));
  EXPECT_THAT(text, Not(HasSubstr("batch_norm")));
  const auto x = numbers(product(of.images), 1);
  auto w = numbers(product(of.weights), 2);
  std::vector<ltc_buffer*> inputs = {floats(of.images, x), floats(of.weights, w)};
  for (const auto& vector : convolution.vectors()) inputs.push_back(floats({convolution.channels()}, vector));
  const auto count = static_cast<size_t>(product(convolution.sizes));
  const auto first = run_once(executable, inputs, count);
  expect_close(first, convolution.expected(x, w));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run_once(executable, inputs, count), first) << "with the form that is kept";
  w = numbers(product(of.weights), 17);
  EXPECT_FALSE(device.write(inputs[1], 0, w.data(), w.size() * sizeof(float)));
  for (int i = 0; i < 3; ++i) expect_close(run_once(executable, inputs, count), convolution.expected(x, w));
  // Other values of the batch norm alone: the weight's form depends on them too.
  if (of.has_norm) {
    const std::vector<float> zeros(static_cast<size_t>(convolution.channels()));
    const size_t scale = 2 + of.has_bias;
    EXPECT_FALSE(device.write(inputs[scale], 0, zeros.data(), zeros.size() * sizeof(float)));
    const auto shift = convolution.vectors()[of.has_bias + 1];
    const auto results = run_once(executable, inputs, count);
    const auto pixels = static_cast<size_t>(convolution.sizes[2] * convolution.sizes[3]);
    for (size_t i = 0; i < results.size(); ++i) ASSERT_EQ(results[i], shift[i / pixels % shift.size()]) << i;
  }
  for (ltc_buffer* buffer : inputs) device.api->buffer_destroy(buffer);
  device.api->executable_destroy(executable);
}

INSTANTIATE_TEST_SUITE_P(, PackWeights, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

TEST_F(PackWeights, a_buffer_keeps_a_form_from_the_second_run_on_until_it_goes) {
  const Case& of = kCases[0];
  const PackedConvolution convolution(of);
  ltc_executable* const executable = device.build(*convolution.graph);
  std::vector<ltc_buffer*> inputs = {floats(of.images, numbers(product(of.images), 1)),
                                     floats(of.weights, numbers(product(of.weights), 2))};
  for (const auto& vector : convolution.vectors()) inputs.push_back(floats({convolution.channels()}, vector));
  const auto count = static_cast<size_t>(product(convolution.sizes));
  const uint64_t before = memory().in_use_bytes, form = static_cast<uint64_t>(product(of.weights) + convolution.channels()) * 4;
  run_once(executable, inputs, count);
  EXPECT_EQ(memory().in_use_bytes, before);
  for (int i = 0; i < 3; ++i) {
    run_once(executable, inputs, count);
    EXPECT_EQ(memory().in_use_bytes, before + form);
  }
  const float zero = 0;
  EXPECT_FALSE(device.write(inputs[1], 0, &zero, sizeof(zero)));
  EXPECT_EQ(memory().in_use_bytes, before) << "a form of other contents is of no use";
  for (int i = 0; i < 2; ++i) run_once(executable, inputs, count);
  EXPECT_EQ(memory().in_use_bytes, before + form);
  const uint64_t weight = static_cast<uint64_t>(product(of.weights)) * 4;
  device.api->buffer_destroy(inputs[1]);
  EXPECT_EQ(memory().in_use_bytes, before - weight);
  inputs.erase(inputs.begin() + 1);
  for (ltc_buffer* buffer : inputs) device.api->buffer_destroy(buffer);
  device.api->executable_destroy(executable);
}

TEST_F(PackWeights, weights_that_change_are_not_packed) {
  std::string text;
  device.api->executable_destroy(device.build(*PackedConvolution(kCases[0], 0).graph, &text));
  EXPECT_THAT(text, Not(HasSubstr("pack_convolution")));
  device.api->executable_destroy(device.build(*Convolution({2, 16, 14, 14}, {32, 16, 3, 3}, 2, 1).graph, &text));
  EXPECT_THAT(text, Not(HasSubstr("pack_convolution"))) << "a training step";
}

}  // namespace
}  // namespace ltc::testing
