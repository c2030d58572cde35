// Tests that the conformance suite does not have: the choice of a device, messages of compilers, memory that is used again, saved
// executables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <span>

#include "core/compile/lowering/abi_graph.h"
#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "core/host/status.h"
#include "core/ir/text.h"
#include "device/pool.h"
#include "kernels/graph/op_table.h"
#include "kernels/print/formula.h"
#include "opencl/driver.h"
#include "opencl/errors.h"

namespace ltc::opencl {
namespace {

using device::Block;
using device::MemoryPool;

using ::testing::HasSubstr;

class OpenCl : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    const auto devices = find_devices("", why);
    ASSERT_FALSE(devices.empty()) << why;
    facts_ = devices[0];
    driver_.emplace(facts_);
    context_ = driver_->context();
  }
  template <typename Call>
  Failure failure_of(Call call) {
    try {
      call();
    } catch (const Failure& failure) {
      return failure;
    }
    ADD_FAILURE() << "nothing was thrown";
    return {LTC_INTERNAL, {}};
  }
  DeviceFacts facts_;
  Context context_;
  std::optional<Driver> driver_;
};

TEST_F(OpenCl, a_device_is_chosen_by_number_and_by_part_of_its_name) {
  std::string why;
  for (const std::string& setting : {std::string("0"), facts_.name.substr(1), facts_.platform_name}) {
    const auto devices = find_devices(setting, why);
    ASSERT_FALSE(devices.empty()) << setting;
    EXPECT_EQ(devices[0].id, facts_.id);
  }
}

TEST_F(OpenCl, a_name_that_no_device_has_is_explained) {
  std::string why;
  EXPECT_TRUE(find_devices("no such device", why).empty());
  EXPECT_THAT(why, HasSubstr("the option device=no such device names none of the"));
  EXPECT_THAT(why, HasSubstr(facts_.name));
  EXPECT_EQ(host::Plugin::load(LTC_OPENCL_PLUGIN, {{"device", "no such device"}})->describe().why_no_device, why);
}

TEST_F(OpenCl, an_error_in_a_kernel_shows_its_line) {
  Programs programs(context_.get(), facts_);
  const Failure failure =
      failure_of([&] { programs.build("__kernel void k(__global int* x) {\n  x[0] = 1;\n  x[1] = nonsense;\n}\n"); });
  EXPECT_THAT(failure.error().message, HasSubstr("line 3:   x[1] = nonsense;"));
}

TEST_F(OpenCl, a_source_is_compiled_once) {
  Programs programs(context_.get(), facts_);
  const std::string source = "__kernel void k(__global int* x) { x[0] = 1; }\n";
  EXPECT_EQ(programs.build(source).get(), programs.build(source).get());
}

// A function that is not declared here would cost every kernel after it the time of declaring all.
TEST_F(OpenCl, what_kernels_call_is_declared) {
  const kernels::Dialect& dialect = kernels::opencl_dialect();
  std::string text = "__kernel void ltc_kernel(__global float* x, __global double* y, float16 v) {\n";
  for (const kernels::OpRow& row : kernels::op_table()) {
    const size_t call = row.floats.find('@');
    if (call == row.floats.npos) continue;
    const std::string_view name = row.floats.substr(call + 1, row.floats.find('(', call) - call - 1);
    const auto expanded = [&](ltc_dtype dtype, const std::string& arg, bool in_lanes) {
      return kernels::expand(row.floats, dtype, std::vector{arg, arg}, dialect, in_lanes);
    };
    text += "  x[0] += " + expanded(LTC_F32, "x[1]", false) + ";\n  y[0] += " + expanded(LTC_F64, "y[1]", false) + ";\n";
    if (!kernels::is_own_function(name, true)) text += "  v += " + expanded(LTC_F32, "v", true) + ";\n";
  }
  text += "  vstore16(v, 0, x);\n}\n";
  Programs programs(context_.get(), facts_);
  programs.build(kernels::program_text({&text, 1}, dialect));
  EXPECT_EQ(programs.uses_own_builtins(), facts_.fp64 && facts_.platform_name == "Portable Computing Language");
}

TEST_F(OpenCl, memory_is_used_again) {
  MemoryPool pool(*driver_, 1 << 20, 1 << 20);
  const Block block = pool.take(1000);
  EXPECT_EQ(pool.statistics().in_use_bytes, block.size_bytes);
  pool.give(block);
  EXPECT_EQ(pool.statistics().in_use_bytes, 0u);
  EXPECT_GE(pool.statistics().cached_bytes, 1000u);
  const Block again = pool.take(1001);
  EXPECT_EQ(again.memory, block.memory);
  pool.give(again);
  EXPECT_GE(pool.statistics().peak_bytes, 1000u);
}

TEST_F(OpenCl, memory_that_lies_about_goes_before_a_refusal) {
  MemoryPool pool(*driver_, 1 << 20, 1 << 20);
  pool.give(pool.take(700 << 10));
  pool.give(pool.take(600 << 10));
  EXPECT_EQ(pool.statistics().in_use_bytes, 0u);
}

TEST_F(OpenCl, no_memory_says_how_much_is_in_use) {
  MemoryPool pool(*driver_, 1 << 20, 1 << 20);
  const Block block = pool.take(900 << 10);
  const Failure full = failure_of([&] { pool.take(900 << 10); });
  EXPECT_EQ(full.error().code, ltc_code{LTC_RESOURCE_EXHAUSTED});
  EXPECT_THAT(full.error().message, HasSubstr("921600 bytes"));
  EXPECT_THAT(full.error().message, HasSubstr("of 1048576 are in use"));
  EXPECT_THAT(full.error().message, HasSubstr("most by 1 of 1048576 bytes"));
  pool.give(block);
  EXPECT_EQ(failure_of([&] { pool.take(2 << 20); }).error().code, ltc_code{LTC_RESOURCE_EXHAUSTED});
}

TEST_F(OpenCl, saved_executables_are_checked) {
  const auto device = host::Plugin::load(LTC_OPENCL_PLUGIN)->open_device(0);
  const Graph graph = parse("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) return %1 }");
  ltc_program* program = device->lower(*AbiGraph(graph).get());
  ltc_executable* executable = device->compile(program, 2);
  const std::string saved = device->save_executable(executable).value();
  ltc_executable* loaded = device->load_executable(saved.data(), saved.size());
  EXPECT_NE(loaded, nullptr);
  device->destroy_executable(loaded);
  for (size_t size = 0; size < saved.size(); size += 1 + size / 4)
    EXPECT_EQ(device->load_executable(saved.data(), size), nullptr);
  for (size_t at = 0; at < saved.size(); at += 1 + at / 4) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x11);
    EXPECT_EQ(device->load_executable(damaged.data(), damaged.size()), nullptr) << at;
  }
  device->destroy_executable(executable);
  device->destroy_program(program);
}

// A step of an optimizer: a param of 4 MB and its state, both donated, and a gradient.
class InPlace : public ::testing::Test {
 protected:
  static constexpr size_t kCount = 1 << 20, kBytes = kCount * sizeof(float);

  InPlace() {
    const Graph graph = parse(R"(graph(%0: f32[1048576] -> 0, %1: f32[1048576] -> 1, %2: f32[1048576]) {
      %3: f32[1048576] = aten::add.Tensor(%1, %2) {alpha=1}
      %4: f32[1048576] = aten::add.Tensor(%0, %3) {alpha=1}
      return %4, %3 })");
    ltc_program* program = device_->lower(*AbiGraph(graph).get());
    executable_ = device_->compile(program, 2);
    device_->destroy_program(program);
    for (ltc_buffer*& input : inputs_) input = filled(1);
  }
  ~InPlace() override {
    for (ltc_buffer* buffer : inputs_) device_->destroy_buffer(buffer);
    device_->destroy_executable(executable_);
  }

  ltc_buffer* filled(float value) {
    const int64_t size = kCount;
    auto type = host::sized<ltc_type>();
    type.dtype = LTC_F32;
    type.rank = 1;
    type.sizes = &size;
    ltc_buffer* buffer = device_->create_buffer(type);
    std::vector<float> values(kCount, value);
    move(LTC_TO_DEVICE, buffer, values);
    return buffer;
  }
  void move(ltc_direction direction, ltc_buffer* buffer, std::vector<float>& values) {
    auto args = host::sized<ltc_transfer_args>();
    args.direction = direction;
    args.buffer = buffer;
    if (direction == LTC_TO_DEVICE) args.from = values.data();
    if (direction == LTC_FROM_DEVICE) args.to = values.data();
    args.size_bytes = kBytes;
    finish(device_->transfer(args));
  }
  void finish(ltc_event* event) {
    device_->wait(event);
    device_->destroy_event(event);
  }
  // The outputs replace the param and its state; they are gone where they were donated.
  void step(std::vector<uint8_t> donate) {
    auto args = host::sized<ltc_execute_args>();
    args.executable = executable_;
    args.inputs = inputs_;
    args.input_count = 3;
    args.donate = donate.data();
    args.output_count = 2;
    ltc_buffer* outputs[2] = {};
    finish(device_->execute(args, outputs));
    for (size_t i = 0; i < 2; ++i) {
      if (!donate[i]) device_->destroy_buffer(inputs_[i]);
      inputs_[i] = outputs[i];
    }
  }
  std::vector<float> values(size_t input) {
    std::vector<float> values(kCount);
    move(LTC_FROM_DEVICE, inputs_[input], values);
    return values;
  }

  std::unique_ptr<host::PluginDevice> device_ = host::Plugin::load(LTC_OPENCL_PLUGIN)->open_device(0);
  ltc_executable* executable_ = nullptr;
  ltc_buffer* inputs_[3] = {};
};

TEST_F(InPlace, what_is_donated_needs_no_second_copy) {
  for (int i = 0; i < 3; ++i) step({1, 1, 0});
  EXPECT_EQ(values(0), std::vector<float>(kCount, 1 + 2 + 3 + 4));
  EXPECT_EQ(values(1), std::vector<float>(kCount, 4));
  EXPECT_LT(device_->memory_stats().peak_bytes, 4 * kBytes);
}

TEST_F(InPlace, what_is_not_donated_is_left_alone) {
  step({1, 0, 0});
  EXPECT_EQ(values(0), std::vector<float>(kCount, 3));
  EXPECT_EQ(values(1), std::vector<float>(kCount, 2));
  EXPECT_EQ(values(2), std::vector<float>(kCount, 1));
  EXPECT_GE(device_->memory_stats().peak_bytes, 4 * kBytes);
  EXPECT_LT(device_->memory_stats().peak_bytes, 5 * kBytes);
}

// The device's word for bad indices outlives the run that writes it.
class Indices : public ::testing::Test {
 protected:
  static constexpr int64_t kCount = 300;

  Indices() {
    const Graph graph = parse(R"(graph(%0: i64[300], %1: i64[8]) {
      %2: i64[300] = aten::neg(%0)
      %3: i64[300] = aten::gather(%1, %0) {dim=0,sparse_grad=false}
      %4: i64[8] = aten::scatter_add(%1, %0, %2) {dim=0}
      return %3, %4 })");
    ltc_program* program = device_->lower(*AbiGraph(graph).get());
    executable_ = device_->compile(program, 2);
    device_->destroy_program(program);
    ltc_buffer* table = sent(std::vector<int64_t>(8, 1));
    good_ = {sent(std::vector<int64_t>(kCount, 7)), table};
    std::vector<int64_t> indices(kCount, 7);
    indices[kCount - 1] = 8;
    bad_ = {sent(indices), table};
  }
  ~Indices() override {
    for (ltc_buffer* buffer : {good_[0], good_[1], bad_[0]}) device_->destroy_buffer(buffer);
    device_->destroy_executable(executable_);
  }

  ltc_buffer* sent(const std::vector<int64_t>& values) {
    const auto size = static_cast<int64_t>(values.size());
    auto type = host::sized<ltc_type>();
    type.dtype = LTC_I64;
    type.rank = 1;
    type.sizes = &size;
    auto args = host::sized<ltc_transfer_args>();
    args.direction = LTC_TO_DEVICE;
    args.buffer = device_->create_buffer(type);
    args.from = values.data();
    args.size_bytes = values.size() * sizeof values[0];
    ltc_event* event = device_->transfer(args);
    device_->wait(event);
    device_->destroy_event(event);
    return args.buffer;
  }
  ltc_event* run(std::span<ltc_buffer*> inputs) {
    auto args = host::sized<ltc_execute_args>();
    args.executable = executable_;
    args.inputs = inputs.data();
    args.input_count = 2;
    args.output_count = 2;
    ltc_buffer* outputs[2] = {};
    ltc_event* event = device_->execute(args, outputs);
    for (ltc_buffer* output : outputs) device_->destroy_buffer(output);
    return event;
  }
  void expect_node_of_error(ltc_event* event) {
    try {
      device_->wait(event);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const host::NodeError& error) {
      EXPECT_EQ(error.code(), Code::kOutOfRange);
      EXPECT_GT(error.node(), 0u);
      EXPECT_THAT(error.what(), HasSubstr("not in [0, 8)"));
    }
  }

  std::unique_ptr<host::PluginDevice> device_ = host::Plugin::load(LTC_OPENCL_PLUGIN)->open_device(0);
  ltc_executable* executable_ = nullptr;
  std::array<ltc_buffer*, 2> good_ = {}, bad_ = {};
};

TEST_F(Indices, a_bad_one_fails_its_run_only) {
  std::vector<ltc_event*> events;
  for (int i = 0; i < 1200; ++i) events.push_back(run(i % 3 == 1 ? bad_ : good_));  // more than a page of words
  for (size_t i = events.size(); i-- > 0;) {
    if (i % 3 == 1) {
      expect_node_of_error(events[i]);
      expect_node_of_error(events[i]);
    } else {
      EXPECT_TRUE(device_->wait(events[i]));
    }
  }
  for (ltc_event* event : events) device_->destroy_event(event);
}

TEST_F(Indices, an_event_that_nobody_waits_for_is_no_harm) {
  for (int i = 0; i < 1200; ++i) device_->destroy_event(run(bad_));
  ltc_event* event = run(good_);
  EXPECT_TRUE(device_->wait(event));
  device_->destroy_event(event);
}

TEST_F(Indices, a_saved_executable_checks_too) {
  const std::string saved = device_->save_executable(executable_).value();
  device_->destroy_executable(executable_);
  executable_ = device_->load_executable(saved.data(), saved.size());
  ltc_event* event = run(bad_);
  expect_node_of_error(event);
  device_->destroy_event(event);
}

}  // namespace
}  // namespace ltc::opencl
