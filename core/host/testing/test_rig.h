// An open device of a test plugin, for the tests of what goes through its slots.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "core/host/testing/test_support.h"
#include "core/testing/c_graph.h"
#include "core/testing/test_plugins.h"

namespace ltc::host {

using testing::CGraph;
using Floats = std::vector<float>;

// A device and what these tests do with it over and over.
struct Rig {
  std::unique_ptr<PluginDevice> device;

  explicit Rig(const std::string& plugin) : device(testing::load_plugin(plugin)->open_device(0)) {}
  explicit Rig(std::unique_ptr<PluginDevice> opened) : device(std::move(opened)) {}

  void finish(ltc_event* event) {
    struct Owned {
      PluginDevice& device;
      ltc_event* event;
      ~Owned() { device.destroy_event(event); }
    } owned{*device, event};
    EXPECT_TRUE(device->wait(event));
  }

  ltc_buffer* buffer(int64_t count) {
    auto type = sized<ltc_type>();
    type.dtype = LTC_F32;
    type.rank = 1;
    type.sizes = &count;
    return device->create_buffer(type);
  }

  ltc_buffer* upload(const Floats& values) {
    ltc_buffer* result = buffer(static_cast<int64_t>(values.size()));
    auto args = sized<ltc_transfer_args>();
    args.direction = LTC_TO_DEVICE;
    args.buffer = result;
    args.from = values.data();
    args.size_bytes = values.size() * sizeof(float);
    finish(device->transfer(args));
    return result;
  }

  Floats download(ltc_buffer* buffer, size_t count) {
    Floats values(count);
    auto args = sized<ltc_transfer_args>();
    args.direction = LTC_FROM_DEVICE;
    args.buffer = buffer;
    args.to = values.data();
    args.size_bytes = count * sizeof(float);
    finish(device->transfer(args));
    return values;
  }

  ltc_executable* build(CGraph& graph) {
    ltc_program* program = device->lower(graph.get());
    ltc_executable* executable = device->compile(program, 0);
    device->destroy_program(program);
    return executable;
  }

  // One run with one output.
  ltc_event* run(ltc_executable* executable, const std::vector<ltc_buffer*>& inputs, const std::vector<ltc_scalar>& scalars,
                 ltc_buffer** output, const uint8_t* donate = nullptr) {
    auto args = sized<ltc_execute_args>();
    args.executable = executable;
    args.input_count = inputs.size();
    args.inputs = inputs.data();
    args.donate = donate;
    args.scalar_count = scalars.size();
    args.scalars = scalars.data();
    args.output_count = 1;
    return device->execute(args, output);
  }
};

// relu(x + s * x), s a scalar param
inline CGraph scaled_graph() {
  CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {3}, 0, 0);
  const uint32_t s = graph.scalar(LTC_F64);
  const uint32_t sx = graph.node("aten::mul.Tensor", {x, s}, LTC_F32, {3});
  const uint32_t sum = graph.node("aten::add.Tensor", {x, sx}, LTC_F32, {3}, {1});
  graph.output(graph.node("aten::relu", {sum}, LTC_F32, {3}));
  return graph;
}

// A run of a graph of two outputs, -x and relu(x), that breaks the contract; what the user reads.
inline std::string broken_run(Rig& rig) {
  CGraph graph;
  const uint32_t x = graph.param(LTC_F32, {3});
  graph.output(graph.node("aten::neg", {x}, LTC_F32, {3}));
  graph.output(graph.node("aten::relu", {x}, LTC_F32, {3}));
  ltc_executable* executable = rig.build(graph);
  ltc_buffer* input = rig.upload({1, 2, 3});
  std::vector<ltc_buffer*> outputs(2);
  auto args = sized<ltc_execute_args>();
  args.executable = executable;
  args.input_count = 1;
  args.inputs = &input;
  args.output_count = outputs.size();
  std::string message = "no error";
  try {
    (void)rig.device->execute(args, outputs.data());
  } catch (const BrokenContract& error) {
    message = error.what();
  }
  EXPECT_THAT(outputs, ::testing::Each(nullptr));
  EXPECT_EQ(rig.device->memory_stats().in_use_bytes, 12u) << "the input stays, each output is freed once";
  EXPECT_EQ(rig.download(input, 3), (Floats{1, 2, 3}));
  rig.device->destroy_buffer(input);
  rig.device->destroy_executable(executable);
  return message;
}

}  // namespace ltc::host
