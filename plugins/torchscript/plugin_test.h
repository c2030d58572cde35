// What the tests of the plugin share: one open device, and graphs that run once.
#pragma once

#include <gmock/gmock.h>

#include <numeric>

#include "test_host.h"

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

}  // namespace ltc::testing
