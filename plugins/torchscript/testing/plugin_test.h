// The fixture of the plugin's tests: one open device, and graphs that run once.
#pragma once

#include <gmock/gmock.h>

#include <numeric>

#include "torchscript/testing/test_host.h"

namespace ltc::testing {

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

// A convolution of sides without holes, and its gradients.
struct Convolution {
  Convolution(const std::vector<int64_t>& images, const std::vector<int64_t>& weights, int64_t stride, int64_t padding) {
    const auto both = [](int64_t value) { return std::vector<int64_t>{value, value}; };
    std::vector<Attr> attrs = {{"stride", both(stride)},           {"padding", both(padding)},  {"dilation", both(1)},
                               {"transposed", LTC_ATTR_BOOL, {0}}, {"output_padding", both(0)}, {"groups", int64_t{1}}};
    const auto side = [&](size_t i) { return (images[i] + 2 * padding - weights[i]) / stride + 1; };
    const std::vector<int64_t> sizes = {images[0], weights[0], side(2), side(3)}, vector = {weights[0]};
    const uint32_t x = g.param(LTC_F32, images), w = g.param(LTC_F32, weights), b = g.param(LTC_F32, vector);
    const uint32_t gradient = g.param(LTC_F32, sizes);
    const uint32_t y = g.node("aten::convolution", {x, w, b}, attrs, LTC_F32, sizes);
    const uint32_t dx = g.value(LTC_F32, images), dw = g.value(LTC_F32, weights), db = g.value(LTC_F32, vector);
    attrs.push_back({"output_mask", std::vector<int64_t>{1, 1, 1}});
    attrs.push_back({"bias_sizes", vector});
    g.node("aten::convolution_backward", {gradient, x, w}, attrs, {dx, dw, db});
    graph = &g.finish({y, dx, dw, db});
  }
  GraphBuilder g;
  const ltc_graph* graph;
};

}  // namespace ltc::testing
