// The rewrites of programs, seen in their text, and that programs still compute the same.
#include <cmath>

#include "torchscript/testing/plugin_test.h"

namespace ltc::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const std::vector<Attr> kPlain = {{"alpha", int64_t{1}}};
const std::vector<Attr> kSwapped = {{"dims", std::vector<int64_t>{1, 0}}};

class RewritesTest : public TorchscriptTest {
 protected:
  std::string text_of(const ltc_graph& graph) {
    std::string text;
    device.api->executable_destroy(device.build(graph, &text));
    return text;
  }

  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
    return found;
  }

  // A buffer of the same number everywhere.
  ltc_buffer* filled(std::vector<int64_t> sizes, float value) {
    const int64_t size = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    return floats(std::move(sizes), std::vector<float>(static_cast<size_t>(size), value));
  }

  std::vector<std::vector<float>> run_and_free(const ltc_graph& graph, const std::vector<ltc_buffer*>& inputs) {
    auto results = run(graph, inputs);
    for (ltc_buffer* buffer : inputs) device.api->buffer_destroy(buffer);
    return results;
  }
};

// The gradient of a weight and of a bias that `steps` steps share, and a term that is no product.
struct SharedWeight {
  SharedWeight(int steps, int64_t rows) {
    uint32_t weight = g.param(LTC_F32, {16, 8}), bias = LTC_NONE;
    for (int i = 0; i < steps; ++i) {
      const uint32_t gradient = g.param(LTC_F32, {rows, 16}), x = g.param(LTC_F32, {rows, 8});
      const uint32_t swapped = g.node("aten::permute", {gradient}, kSwapped, LTC_F32, {16, rows});
      const uint32_t product = g.node("aten::mm", {swapped, x}, {}, LTC_F32, {16, 8});
      weight = g.node("aten::add.Tensor", {weight, product}, kPlain, LTC_F32, {16, 8});
      const uint32_t sum = g.node("aten::sum.dim_IntList", {gradient}, {{"dim", std::vector<int64_t>{0}}}, LTC_F32, {16});
      bias = i == 0 ? sum : g.node("aten::add.Tensor", {bias, sum}, kPlain, LTC_F32, {16});
    }
    graph = &g.finish({weight, bias});
  }
  GraphBuilder g;
  const ltc_graph* graph;
};

TEST_F(RewritesTest, SumsOfProductsAreOneProduct) {
  SharedWeight five(5, 3);
  const std::string text = text_of(*five.graph);
  EXPECT_EQ(count(text, "= aten::mm("), 1) << text;
  EXPECT_EQ(count(text, "::sum("), 1) << text;
  EXPECT_EQ(count(text, "= aten::add("), 1) << text;
  std::vector<ltc_buffer*> inputs = {filled({16, 8}, 1000)};
  for (int i = 0; i < 5; ++i) {
    inputs.push_back(filled({3, 16}, static_cast<float>(i)));
    inputs.push_back(filled({3, 8}, static_cast<float>(i + 1)));
  }
  const auto results = run_and_free(*five.graph, inputs);
  EXPECT_THAT(results[0], Each(1000 + 3 * (0 * 1 + 1 * 2 + 2 * 3 + 3 * 4 + 4 * 5)));
  EXPECT_THAT(results[1], Each(3 * (0 + 1 + 2 + 3 + 4)));
}

TEST_F(RewritesTest, FewOrLongProductsStay) {
  EXPECT_EQ(count(text_of(*SharedWeight(3, 3).graph), "= aten::mm("), 3);
  EXPECT_EQ(count(text_of(*SharedWeight(5, 200).graph), "= aten::mm("), 5);  // to copy the operands would take longer
}

TEST_F(RewritesTest, DoublingsEnd) {
  GraphBuilder g;
  uint32_t x = g.param(LTC_F32, {3});
  for (int i = 0; i < 60; ++i) x = g.node("aten::add.Tensor", {x, x}, kPlain, LTC_F32, {3});
  EXPECT_THAT(run_and_free(g.finish({x}), {filled({3}, 1)})[0], Each(std::ldexp(1.f, 60)));
}

TEST_F(RewritesTest, ProductsThatAreReadStay) {
  GraphBuilder g;
  std::vector<uint32_t> products;
  for (int i = 0; i < 4; ++i) {
    const uint32_t a = g.param(LTC_F32, {16, 1}), b = g.param(LTC_F32, {1, 16});
    products.push_back(g.node("aten::mm", {a, b}, {}, LTC_F32, {16, 16}));
  }
  uint32_t sum = products[0];
  for (int i = 1; i < 4; ++i) sum = g.node("aten::add.Tensor", {sum, products[i]}, kPlain, LTC_F32, {16, 16});
  EXPECT_EQ(count(text_of(g.finish({sum, products[2]})), "= aten::mm("), 4);
}

// x[:, t] @ w + b for each t, and h @ w + b of the steps before.
TEST_F(RewritesTest, RowsKnownAtOnceAreMultipliedAtOnce) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 5, 3}), w = g.param(LTC_F32, {3, 3}), b = g.param(LTC_F32, {3});
  const std::vector<Attr> once = {{"beta", int64_t{1}}, {"alpha", int64_t{1}}};
  uint32_t h = LTC_NONE;
  for (int64_t t = 0; t < 5; ++t) {
    const uint32_t part =
        g.node("aten::slice.Tensor", {x}, {{"dim", int64_t{1}}, {"start", t}, {"end", t + 1}}, LTC_F32, {2, 1, 3});
    const uint32_t row = g.node("aten::reshape", {part}, {{"shape", std::vector<int64_t>{2, 3}}}, LTC_F32, {2, 3});
    const uint32_t own = g.node("aten::addmm", {b, row, w}, once, LTC_F32, {2, 3});
    if (t == 0) {
      h = own;
    } else {
      const uint32_t last = g.node("aten::addmm", {b, h, w}, once, LTC_F32, {2, 3});
      h = g.node("aten::add.Tensor", {own, last}, kPlain, LTC_F32, {2, 3});
    }
  }
  const ltc_graph& graph = g.finish({h});
  EXPECT_EQ(count(text_of(graph), "= aten::addmm("), 1 + 4);
  std::vector<float> values(30);
  for (int i = 0; i < 2; ++i) {
    for (int t = 0; t < 5; ++t) std::fill_n(values.begin() + (i * 5 + t) * 3, 3, static_cast<float>(t + 10 * i));
  }
  const auto results =
      run_and_free(graph, {floats({2, 5, 3}, values), floats({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}), filled({3}, 1)});
  // t + 1 for each step, and another 1 for each but the first
  EXPECT_THAT(results[0], ElementsAre(19, 19, 19, 69, 69, 69));
}

// The gradients that autograd makes for x[0], x[1], ... of a tensor x whose dims stood in another order before.
TEST_F(RewritesTest, GradientsOfPartsAreOneCopy) {
  const auto graph_of = [](GraphBuilder& g, std::vector<int64_t> indices) -> const ltc_graph& {
    uint32_t sum = LTC_NONE;
    for (const int64_t index : indices) {
      const uint32_t part = g.param(LTC_F32, {2, 2});
      const uint32_t spread =
          g.node("aten::select_backward", {part},
                 {{"input_sizes", std::vector<int64_t>{2, 2, 2}}, {"dim", int64_t{0}}, {"index", index}}, LTC_F32, {2, 2, 2});
      sum = sum == LTC_NONE ? spread : g.node("aten::add.Tensor", {sum, spread}, kPlain, LTC_F32, {2, 2, 2});
    }
    return g.finish({g.node("aten::permute", {sum}, {{"dims", std::vector<int64_t>{1, 0, 2}}}, LTC_F32, {2, 2, 2})});
  };
  GraphBuilder whole, twice;
  const ltc_graph& graph = graph_of(whole, {1, 0});
  EXPECT_EQ(count(text_of(graph), "aten::select_backward"), 0);
  const auto results = run_and_free(graph, {floats({2, 2}, {5, 6, 7, -0.f}), floats({2, 2}, {1, 2, 3, 4})});
  EXPECT_THAT(results[0], ElementsAre(1, 2, 5, 6, 3, 4, 7, 0));
  EXPECT_FALSE(std::signbit(results[0][7]));  // as it is a sum with zero
  EXPECT_EQ(count(text_of(graph_of(twice, {1, 1})), "= aten::select_backward"), 2);
}

TEST_F(RewritesTest, GradientsOfSlicesAreOneCopy) {
  const auto graph_of = [](GraphBuilder& g, int64_t last) -> const ltc_graph& {
    uint32_t sum = LTC_NONE;
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 2}, {2, 3}, {3, last}}) {
      const uint32_t part = g.param(LTC_F32, {2, end - begin});
      const std::vector<Attr> range = {
          {"input_sizes", std::vector<int64_t>{2, 4}}, {"dim", int64_t{1}}, {"start", begin}, {"end", end}, {"step", int64_t{1}}};
      const uint32_t spread = g.node("aten::slice_backward", {part}, range, LTC_F32, {2, 4});
      sum = sum == LTC_NONE ? spread : g.node("aten::add.Tensor", {sum, spread}, kPlain, LTC_F32, {2, 4});
    }
    return g.finish({sum});
  };
  GraphBuilder whole, partial;
  const ltc_graph& graph = graph_of(whole, 4);
  EXPECT_EQ(count(text_of(graph), "aten::slice_backward"), 0);
  const auto results = run_and_free(graph, {floats({2, 2}, {1, 2, 5, 6}), floats({2, 1}, {3, 7}), floats({2, 1}, {4, 8})});
  EXPECT_THAT(results[0], ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(count(text_of(graph_of(partial, 3)), "= aten::slice_backward"), 3);
}

TEST_F(RewritesTest, ViewsDoNotDivideLoops) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {2, 8});
  std::vector<uint32_t> made;
  uint32_t sum = LTC_NONE;
  for (int64_t i = 0; i < 4; ++i) {
    const uint32_t part =
        g.node("aten::slice.Tensor", {x}, {{"dim", int64_t{1}}, {"start", 2 * i}, {"end", 2 * i + 2}}, LTC_F32, {2, 2});
    made.push_back(g.node("aten::neg", {part}, {}, LTC_F32, {2, 2}));
    sum = i == 0 ? made[0] : g.node("aten::mul.Tensor", {sum, made.back()}, {}, LTC_F32, {2, 2});
  }
  made.push_back(sum);
  const ltc_graph& graph = g.finish(made);
  EXPECT_EQ(count(text_of(graph), "# one loop"), 1);
  const auto results = run_and_free(graph, {floats({2, 8}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1, 1, 1, 1, 1})});
  EXPECT_THAT(results[1], ElementsAre(-3, -4, -1, -1));
  EXPECT_THAT(results[4], ElementsAre(105, 384, 1, 1));
}

// softmax(x * m + y) * m, and the layer norm of a sum, which is a result too.
TEST_F(RewritesTest, RowsAndWhatStandsAroundThemAreOneLoop) {
  const std::vector<Attr> last = {{"dim", int64_t{-1}}, {"half_to_float", LTC_ATTR_BOOL, {0}}};
  const std::vector<Attr> norm = {{"normalized_shape", std::vector<int64_t>{2}}, {"eps", 0.0}};
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3, 2}), y = g.param(LTC_F32, {3, 2}), m = g.param(LTC_F32, {2});
  const uint32_t scaled = g.node("aten::mul.Tensor", {x, m}, {}, LTC_F32, {3, 2});
  const uint32_t sum = g.node("aten::add.Tensor", {scaled, y}, kPlain, LTC_F32, {3, 2});
  const uint32_t weights = g.node("aten::_softmax", {sum}, last, LTC_F32, {3, 2});
  const uint32_t normal = g.value(LTC_F32, {3, 2}), mean = g.value(LTC_F32, {3, 1}), scale = g.value(LTC_F32, {3, 1});
  g.node("aten::native_layer_norm", {sum, m, LTC_NONE}, norm, {normal, mean, scale});
  const ltc_graph& graph = g.finish({sum, g.node("aten::mul.Tensor", {weights, m}, {}, LTC_F32, {3, 2}), normal, mean, scale});
  const std::string text = text_of(graph);
  EXPECT_EQ(count(text, "# one loop"), 1) << text;
  EXPECT_EQ(count(text, "softmax(r5), rows of 2"), 1) << text;
  EXPECT_EQ(count(text, "normalize(r5), rows of 2"), 1) << text;
  const auto results =
      run_and_free(graph, {floats({3, 2}, {1, 1, 2, 2, 3, 3}), floats({3, 2}, {0, -1, 0, -2, 0, -5}), floats({2}, {1, 2})});
  EXPECT_THAT(results[0], ElementsAre(1, 1, 2, 2, 3, 1));
  EXPECT_THAT(results[1], ElementsAre(.5f, 1, .5f, 1, ::testing::FloatEq(1 / (1 + std::exp(-2.f))),
                                      ::testing::FloatEq(2 / (1 + std::exp(2.f)))));
  EXPECT_THAT(results[2][4], 1);
  EXPECT_THAT(results[2][5], -2);
  EXPECT_THAT(results[3], ElementsAre(1, 2, 2));
  EXPECT_THAT(results[4][2], 1);
}

// Its means are there when all of a row is, and who reads them waits for that.
TEST_F(RewritesTest, ARowsStatisticsEndItsLoop) {
  const std::vector<Attr> norm = {{"normalized_shape", std::vector<int64_t>{2}}, {"eps", 1.0}};
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {3, 2});
  const uint32_t negative = g.node("aten::neg", {x}, {}, LTC_F32, {3, 2});
  const uint32_t normal = g.value(LTC_F32, {3, 2}), mean = g.value(LTC_F32, {3, 1}), scale = g.value(LTC_F32, {3, 1});
  g.node("aten::native_layer_norm", {negative, LTC_NONE, LTC_NONE}, norm, {normal, mean, scale});
  const uint32_t centred = g.node("aten::sub.Tensor", {negative, mean}, kPlain, LTC_F32, {3, 2});
  const uint32_t both = g.node("aten::mul.Tensor", {centred, normal}, {}, LTC_F32, {3, 2});
  const ltc_graph& graph = g.finish({both});
  const std::string text = text_of(graph);
  EXPECT_EQ(count(text, "# one loop"), 2) << text;
  EXPECT_THAT(run_and_free(graph, {floats({3, 2}, {1, 1, 2, 2, 3, 3})})[0], Each(0));
}

const std::vector<Attr> kWindow = {{"kernel_size", std::vector<int64_t>{2, 2}},
                                   {"stride", std::vector<int64_t>{2, 2}},
                                   {"padding", std::vector<int64_t>{0, 0}},
                                   {"dilation", std::vector<int64_t>{1, 1}},
                                   {"ceil_mode", LTC_ATTR_BOOL, {0}}};

// A relu and a max-pool, and with a gradient what autograd makes of them. The relu is read by somebody else too, or not.
struct ReluAndPool {
  explicit ReluAndPool(bool with_gradient, bool is_read = false) {
    const uint32_t x = g.param(LTC_F32, {1, 1, 4, 4});
    const uint32_t y = g.node("aten::relu", {x}, {}, LTC_F32, {1, 1, 4, 4});
    const uint32_t pooled = g.value(LTC_F32, {1, 1, 2, 2}), where = g.value(LTC_I64, {1, 1, 2, 2});
    g.node("aten::max_pool2d_with_indices", {y}, kWindow, {pooled, where});
    std::vector<uint32_t> outputs = {pooled};
    if (with_gradient) {
      const uint32_t gradient = g.param(LTC_F32, {1, 1, 2, 2});
      const uint32_t spread =
          g.node("aten::max_pool2d_with_indices_backward", {gradient, y, where}, kWindow, LTC_F32, {1, 1, 4, 4});
      outputs.push_back(g.node("aten::threshold_backward", {spread, y}, {{"threshold", int64_t{0}}}, LTC_F32, {1, 1, 4, 4}));
    }
    if (is_read) outputs.push_back(y);
    graph = &g.finish(outputs);
  }
  GraphBuilder g;
  const ltc_graph* graph;
};

TEST_F(RewritesTest, ARelusMaximaAreThePools) {
  const float nan = std::nanf("");
  const std::vector<float> image = {1, 5, -1, -2, 3, 4, -0.f, -3, -7, nan, 2, 2, -8, 9, 2, 2};
  const ReluAndPool forward(false), training(true), read(true, true);
  EXPECT_EQ(count(text_of(*forward.graph), "aten::relu("), 0);
  const auto pooled = run_and_free(*forward.graph, {floats({1, 1, 4, 4}, image)});
  EXPECT_THAT(pooled[0], ElementsAre(5, 0, ::testing::IsNan(), 2));
  EXPECT_FALSE(std::signbit(pooled[0][1]));  // the first of what relu makes equal

  const std::string text = text_of(*training.graph);
  EXPECT_EQ(count(text, "aten::relu("), 0) << text;
  EXPECT_EQ(count(text, "Float(1, 1, 2, 2, device=cpu) = aten::threshold_backward("), 1) << text;
  EXPECT_EQ(count(text_of(*read.graph), "= aten::relu("), 1);
  for (const auto* graph : {training.graph, read.graph}) {
    const auto results = run_and_free(*graph, {floats({1, 1, 4, 4}, image), floats({1, 1, 2, 2}, {10, 20, 30, 40})});
    EXPECT_THAT(results[0], ElementsAre(5, 0, ::testing::IsNan(), 2));
    EXPECT_THAT(results[1], ElementsAre(0, 10, 0, 0, 0, 0, 0, 0, 0, 30, 40, 0, 0, 0, 0, 0));
  }
}

// All taps of the one window lie outside: there is nothing that relu could make 0.
TEST_F(RewritesTest, AnEmptyWindowOfARelusPoolStaysEmpty) {
  const std::vector<Attr> window = {{"kernel_size", std::vector<int64_t>{2, 2}},
                                    {"stride", std::vector<int64_t>{1, 1}},
                                    {"padding", std::vector<int64_t>{1, 1}},
                                    {"dilation", std::vector<int64_t>{5, 5}},
                                    {"ceil_mode", LTC_ATTR_BOOL, {0}}};
  GraphBuilder g;
  const uint32_t y = g.node("aten::relu", {g.param(LTC_F32, {1, 1, 4, 4})}, {}, LTC_F32, {1, 1, 4, 4});
  const uint32_t pooled = g.value(LTC_F32, {1, 1, 1, 1}), where = g.value(LTC_I64, {1, 1, 1, 1});
  g.node("aten::max_pool2d_with_indices", {y}, window, {pooled, where});
  const ltc_graph& graph = g.finish({pooled});
  EXPECT_EQ(count(text_of(graph), "aten::relu("), 0);
  EXPECT_THAT(run_and_free(graph, {filled({1, 1, 4, 4}, 3)})[0], ElementsAre(-std::numeric_limits<float>::infinity()));
}

// Three matrices computed at once, told apart as an attention layer does it: [3, 4] of them, the latter joined with what follows.
TEST_F(RewritesTest, PartsOfAStackAreViews) {
  GraphBuilder g;
  const uint32_t x = g.param(LTC_F32, {4, 2, 3, 5});
  const uint32_t stack = g.node("aten::permute", {x}, {{"dims", std::vector<int64_t>{2, 0, 1, 3}}}, LTC_F32, {3, 4, 2, 5});
  const uint32_t joined = g.node("aten::reshape", {stack}, {{"shape", std::vector<int64_t>{24, 5}}}, LTC_F32, {24, 5});
  const auto part = [&](int64_t begin, int64_t end) {
    const std::vector<Attr> attrs = {{"dim", int64_t{0}}, {"start", begin}, {"end", end}, {"step", int64_t{1}}};
    return g.node("aten::slice.Tensor", {joined}, attrs, LTC_F32, {end - begin, 5});
  };
  const std::vector<uint32_t> parts = {part(0, 8), part(8, 16), part(8, 24), part(4, 12)};
  const ltc_graph& graph = g.finish(parts);
  const std::string text = text_of(graph);
  EXPECT_EQ(count(text, "= aten::slice(%"), 4) << text;
  EXPECT_EQ(count(text, "Float(1, 4, 2, 5, device=cpu) = aten::slice("), 2) << text;
  EXPECT_EQ(count(text, "Float(2, 4, 2, 5, device=cpu) = aten::slice("), 1) << text;
  EXPECT_EQ(count(text, "Float(8, 5, device=cpu) = aten::slice("), 1) << text;  // of two matrices, half of each
  std::vector<float> values(4 * 2 * 3 * 5);
  std::iota(values.begin(), values.end(), 0.f);
  const auto results = run_and_free(graph, {floats({4, 2, 3, 5}, values)});
  const int64_t firsts[] = {0, 8, 8, 4};
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t k = 0; k < results[i].size(); ++k) {
      const auto row = firsts[i] + static_cast<int64_t>(k) / 5, column = static_cast<int64_t>(k) % 5;
      ASSERT_EQ(results[i][k], static_cast<float>((row % 8 * 3 + row / 8) * 5 + column)) << i << ", " << k;
    }
  }
}

TEST_F(RewritesTest, BiasesOfLargeProductsAreAddedInTheNextLoop) {
  const auto graph_of = [](GraphBuilder& g, int64_t rows, int64_t columns, double beta) -> const ltc_graph& {
    const int64_t inner = 128;
    const uint32_t bias = g.param(LTC_F32, {columns}), a = g.param(LTC_F32, {rows, inner}),
                   b = g.param(LTC_F32, {inner, columns});
    const uint32_t made = g.node("aten::addmm", {bias, a, b}, {{"beta", beta}, {"alpha", 1.0}}, LTC_F32, {rows, columns});
    const std::vector<int64_t> sizes = {rows / 2, 2, columns};
    const uint32_t form = g.node("aten::reshape", {made}, {{"shape", sizes}}, LTC_F32, sizes);
    return g.finish({g.node("aten::relu", {form}, {}, LTC_F32, sizes)});
  };
  GraphBuilder large, small, scaled;
  const ltc_graph& graph = graph_of(large, 64, 256, 1);
  const std::string text = text_of(graph);
  EXPECT_EQ(count(text, "aten::addmm("), 0) << text;
  EXPECT_EQ(count(text, "one loop over [32, 2, 256]"), 1) << text;
  EXPECT_EQ(count(text_of(graph_of(small, 8, 256, 1)), "= aten::addmm("), 1);
  EXPECT_EQ(count(text_of(graph_of(scaled, 64, 256, 0.5)), "= aten::addmm("), 1);
  std::vector<float> bias(256);
  std::iota(bias.begin(), bias.end(), -150.f);
  const auto results = run_and_free(graph, {floats({256}, bias), filled({64, 128}, 0.5f), filled({128, 256}, 0.25f)});
  for (size_t i = 0; i < results[0].size(); ++i) ASSERT_EQ(results[0][i], std::max(0.f, 16 + bias[i % 256])) << i;
}

TEST_F(RewritesTest, ConvolutionsThatWinogradSuits) {
  const auto text_for = [&](const std::vector<int64_t>& images, const std::vector<int64_t>& weights, int64_t stride) {
    return text_of(*Convolution(images, weights, stride, 1).graph);
  };
  const std::string text = text_for({2, 16, 20, 20}, {32, 16, 3, 3}, 1);
  EXPECT_EQ(count(text, "ltc_torchscript::winograd_convolution("), 1) << text;
  EXPECT_EQ(count(text, "ltc_torchscript::winograd_convolution_backward("), 1) << text;
  EXPECT_EQ(count(text, "aten::convolution"), 0) << text;
  EXPECT_EQ(count(text, "ltc_torchscript::in_format("), 2) << text;  // of images only
  for (const std::string& other : {
           text_for({2, 16, 20, 20}, {32, 16, 3, 3}, 2), text_for({2, 16, 20, 20}, {32, 16, 5, 5}, 1),
           text_for({2, 12, 20, 20}, {32, 12, 3, 3}, 1), text_for({2, 16, 20, 20}, {20, 16, 3, 3}, 1),
           text_for({2, 16, 6, 6}, {32, 16, 3, 3}, 1),  // few tiles
       }) {
    EXPECT_EQ(count(other, "winograd"), 0) << other;
    EXPECT_EQ(count(other, "aten::convolution"), 2) << other;
  }
}

}  // namespace
}  // namespace ltc::testing
