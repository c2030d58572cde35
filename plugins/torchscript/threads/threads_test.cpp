#include <random>

#include "core/testing/refused_threads.h"
#include "torchscript/testing/plugin_test.h"

#if defined(__SANITIZE_THREAD__)
// libtorch is not compiled for the sanitizer, which sees neither how OpenMP's threads wait for each other nor oneDNN's locks.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions() {
  return "race:cpu_flash_attention\nrace:dnnl::impl\n";
}
#endif

namespace ltc::testing {
namespace {

// While nobody waits, fewer threads compute; and a product's chunks are its shapes'.
class ThreadsTest : public TorchscriptTest {
 protected:
  static std::vector<float> noise(size_t count) {
    std::mt19937 generator;
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
  }
  // Random values of the sizes of the params.
  std::vector<ltc_buffer*> noise_for(const ltc_graph& graph) {
    std::vector<ltc_buffer*> inputs;
    for (size_t i = 0; i < graph.param_count; ++i) {
      const ltc_type& type = *graph.types[graph.params[i]->value];
      const std::vector<int64_t> sizes(type.sizes, type.sizes + type.rank);
      const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
      inputs.push_back(floats(sizes, noise(static_cast<size_t>(count))));
    }
    return inputs;
  }
  // The results of `graph` on noise, the same whether the host waits or not.
  std::vector<std::vector<float>> run_both_ways(const ltc_graph& graph) {
    const std::vector<ltc_buffer*> inputs = noise_for(graph);
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

TEST_F(ThreadsTest, AProductWithFewerThreadsThanItMayHave) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer begins threads itself, so that none can be refused here";
#endif
  const int64_t size = 512;
  GraphBuilder g;
  const uint32_t a = g.param(LTC_F32, {size, size}), b = g.param(LTC_F32, {size, size});
  const uint32_t t = g.node("aten::t", {b}, {}, LTC_F32, {size, size});
  const uint32_t product = g.node("aten::mm", {a, t}, {}, LTC_F32, {size, size});
  const ltc_graph& graph = g.finish({product});
  const std::vector<float> values = noise(static_cast<size_t>(size * size));
  const std::vector<ltc_buffer*> inputs = {floats({size, size}, values), floats({size, size}, values)};
  std::vector<std::vector<std::vector<float>>> results;
  for (const int left : {0, 1, kAnyThreads}) {
    threads_left = left;
    results.push_back(run(graph, inputs));
    threads_left = kAnyThreads;
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[2]);
  for (ltc_buffer* input : inputs) device.api->buffer_destroy(input);
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

TEST_F(ThreadsTest, Winograd) {
  for (const int64_t channels : {32, 144}) {  // whose gradients of weights are in parts by results, and by both
    const Convolution convolution({2, channels, 26, 27}, {48, channels, 3, 3}, 1, 1);
    run_both_ways(*convolution.graph);
  }
}

// Sequences are chunks of the work; a mask, which is ATen's to deal with, is not given.
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

// A bias of too few numbers is ATen's to refuse: nothing is read behind it.
TEST_F(ThreadsTest, AnEncoderLayerOfSizesThatDoNotFit) {
  for (const bool is_inner : {false, true}) {
    GraphBuilder g;
    const uint32_t x = g.param(LTC_F32, {2, 8, 16}), in = g.param(LTC_F32, {48, 16}), square = g.param(LTC_F32, {16, 16}),
                   vector = g.param(LTC_F32, {16}), in_bias = g.param(LTC_F32, {is_inner ? 48 : 16}),
                   up = g.param(LTC_F32, {32, 16}), up_bias = g.param(LTC_F32, {is_inner ? 16 : 32}),
                   down = g.param(LTC_F32, {16, 32});
    const std::vector<uint32_t> operands = {x,      in,     in_bias, square,  vector, vector, vector,
                                            vector, vector, up,      up_bias, down,   vector, LTC_NONE};
    const uint32_t y = g.node("aten::_transformer_encoder_layer_fwd", operands,
                              {{"embed_dim", int64_t{16}},
                               {"num_heads", int64_t{2}},
                               {"use_gelu", int64_t{0}},
                               {"norm_first", int64_t{0}},
                               {"eps", 1e-5}},
                              LTC_F32, {2, 8, 16});
    const ltc_graph& graph = g.finish({y});
    std::vector<ltc_buffer*> inputs = noise_for(graph), outputs(1);
    ltc_executable* const executable = device.build(graph);
    EXPECT_TRUE(device.execute(executable, inputs, {}, outputs));
    device.api->executable_destroy(executable);
    for (ltc_buffer* buffer : inputs) device.api->buffer_destroy(buffer);
  }
}

}  // namespace
}  // namespace ltc::testing
