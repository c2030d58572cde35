// The plugin's own binary on emulated devices: what the conformance suite does not reach.
#include <cuda.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <list>

#include "conformance/ops/cases.h"
#include "conformance/ops/compare.h"
#include "conformance/ops/inputs.h"
#include "conformance/ops/reference.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"
#include "core/host/sized.h"
#include "core/ir/text.h"
#include "kernels/testing/attention_cases.h"

namespace ltc::cuda {
namespace {

using conformance::Array;
using kernels::Attention;

class CudaOnEmulator : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(LTC_NVRTC_FOLDER).empty()) GTEST_SKIP() << "no NVRTC where this was configured";
    setenv("CUDA_EMULATOR_MEMORY", "64", 0);
    setenv("CUDA_EMULATOR_DEVICES", "2", 0);
    plugin_ = host::Plugin::load(LTC_CUDA_PLUGIN,
                                 {{"path", LTC_CUDA_EMULATOR_FOLDER ":" LTC_NVRTC_FOLDER}, {"without", "cublas+cudnn"}});
    ASSERT_EQ(plugin_->describe().device_count, 2u) << plugin_->describe().why_no_device;
    device_ = plugin_->open_device(0);
  }
  void TearDown() override {
    for (ltc_executable* one : executables_) device_->destroy_executable(one);
  }

  ltc_buffer* create(ltc_dtype dtype, const std::vector<int64_t>& sizes) {
    auto type = host::sized<ltc_type>();
    type.dtype = dtype;
    type.rank = static_cast<uint32_t>(sizes.size());
    type.sizes = sizes.data();
    return device_->create_buffer(type);
  }
  ltc_buffer* upload(const Array& array) {
    ltc_buffer* buffer = create(static_cast<ltc_dtype>(array.dtype), array.sizes);
    transfer(buffer, array.bytes.size(), LTC_TO_DEVICE, array.bytes.data(), nullptr);
    return buffer;
  }
  Array download(ltc_buffer* buffer, const Type& type) {
    Array array(type.dtype, type.sizes);
    transfer(buffer, array.bytes.size(), LTC_FROM_DEVICE, nullptr, array.bytes.data());
    return array;
  }
  void transfer(ltc_buffer* buffer, size_t bytes, ltc_direction direction, const void* from, void* to) {
    auto args = host::sized<ltc_transfer_args>();
    args.direction = direction;
    args.buffer = buffer;
    args.from = from;
    args.to = to;
    args.size_bytes = bytes;
    finish(device_->transfer(args));
  }
  void finish(ltc_event* event) {
    device_->wait(event);
    device_->destroy_event(event);
  }
  ltc_executable* build(const Graph& graph) {
    const AbiGraph abi(graph);
    ltc_program* program = device_->lower(*abi.get());
    executables_.push_back(device_->compile(program, 1));
    device_->destroy_program(program);
    return executables_.back();
  }
  std::vector<ltc_buffer*> run(ltc_executable* executable, const std::vector<ltc_buffer*>& inputs, size_t outputs,
                               const std::vector<ltc_scalar>& scalars = {}) {
    auto args = host::sized<ltc_execute_args>();
    args.executable = executable;
    args.inputs = inputs.data();
    args.input_count = inputs.size();
    args.scalars = scalars.data();
    args.scalar_count = scalars.size();
    args.output_count = outputs;
    std::vector<ltc_buffer*> made(outputs);
    finish(device_->execute(args, made.data()));
    return made;
  }

  // Runs the graph as the plugin takes it, against its minimal form on the host.
  void check(const std::string& text, std::string_view fills, conformance::Tolerance tolerance) {
    const Graph graph = parse(text);
    const conformance::Inputs inputs = conformance::inputs_for(graph, fills);
    const auto expected = conformance::evaluate(decompose::minimal_form(graph), inputs.arrays, inputs.scalars);
    std::vector<ltc_buffer*> buffers;
    for (const Array& array : inputs.arrays) buffers.push_back(upload(array));
    const auto outputs = run(build(graph), buffers, graph.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(conformance::difference(download(outputs[i], graph.type(graph.outputs[i])), expected[i], tolerance), "")
          << "output " << i << " of\n"
          << text;
      device_->destroy_buffer(outputs[i]);
    }
    for (ltc_buffer* buffer : buffers) device_->destroy_buffer(buffer);
  }
  // A function of the emulator that is for tests.
  template <typename Function>
  static Function* of_driver(const char* name) {
    void* driver = dlopen(LTC_CUDA_EMULATOR_FOLDER "/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Function*>(driver ? dlsym(driver, name) : nullptr);
  }
  // Counts an instruction or a function of the driver, in this process.
  static uint64_t uses(const char* name) { return of_driver<uint64_t(const char*)>("ltc_emulator_uses")(name); }
  void check_attention(std::span<const Attention> all) {
    for (const Attention& one : all) check(graph_of(one), one.fills, {kernels::ulps_for(one.dtype), 1});
  }

  std::shared_ptr<host::Plugin> plugin_;
  std::unique_ptr<host::PluginDevice> device_;
  std::vector<ltc_executable*> executables_;
};

// Tiles in part, several of them; masks.
TEST_F(CudaOnEmulator, attention_on_tensor_cores_agrees_with_its_decomposition) {
  const Attention all[] = {
      {"f16", 1, 2, 2, 40, 40, 64, 64, "", true},        {"f16", 1, 2, 1, 150, 70, 16, 48},
      {"bf16", 1, 2, 1, 70, 140, 64, 64, "bf16[1,140]"}, {"bf16", 1, 1, 1, 40, 70, 128, 128, "bool[1,40,70]", true},
      {"f32", 1, 2, 1, 70, 140, 64, 64, "f32[1,140]"},   {"f32", 1, 2, 2, 70, 70, 32, 48, "", true},
      {"f32", 1, 1, 1, 40, 70, 128, 96, "", true},
  };
  check_attention(all);
  for (const char* name :
       {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
        "cp.async.cg.shared.global"}) {
    EXPECT_GT(uses(name), 0U) << name;
  }
}

TEST_F(CudaOnEmulator, attention_without_tensor_cores_agrees_with_its_decomposition) {
  const Attention all[] = {{"f32", 2, 3, 3, 37, 45, 8, 8}, {"f32", 1, 2, 2, 40, 50, 32, 72, "f32[40,50]", true}};
  check_attention(all);
}

// A program of several launches becomes a graph when it meets the same addresses again; its scalar changes from run to run.
TEST_F(CudaOnEmulator, a_graph_of_launches_takes_new_scalars) {
  const Graph graph = parse(R"(graph(%0: f32[4,32], %1: f64 scalar) {
    %2: f32[4,1] = aten::sum.dim_IntList(%0) {dim=[1],keepdim=true,dtype=none}
    %3: f32[4,32] = aten::mul.Tensor(%0, %1)
    %4: f32[4,32] = aten::add.Tensor(%3, %2) {alpha=1}
    %5: f32[1,32] = aten::sum.dim_IntList(%4) {dim=[0],keepdim=true,dtype=none}
    %6: f32[4,32] = aten::mul.Tensor(%4, %5)
    %7: f32[4,1] = aten::sum.dim_IntList(%6) {dim=[1],keepdim=true,dtype=none}
    %8: f32[4,32] = aten::sub.Tensor(%6, %7) {alpha=1}
    return %8, %2 })");
  const Graph minimal = decompose::minimal_form(graph);
  conformance::Inputs inputs = conformance::inputs_for(graph, "u");
  ltc_executable* executable = build(minimal);
  ltc_buffer* input = upload(inputs.arrays[0]);
  for (int round = 0; round < 6; ++round) {
    inputs.scalars[0].f = 1.5 + round;
    const auto outputs = run(executable, {input}, 2, {{.f = 1.5 + round}});
    const auto expected = conformance::evaluate(minimal, inputs.arrays, inputs.scalars);
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(conformance::difference(download(outputs[i], minimal.type(minimal.outputs[i])), expected[i], {64, 1}), "")
          << round;
      device_->destroy_buffer(outputs[i]);
    }
  }
  device_->destroy_buffer(input);
  EXPECT_GT(uses("cuGraphLaunch"), 1U);
  EXPECT_GT(uses("cuGraphExecKernelNodeSetParams"), 0U);
}

TEST_F(CudaOnEmulator, memory_that_is_not_there_is_refused_and_the_device_goes_on) {
  const std::vector<int64_t> large = {40 << 18};  // of F32: 40 of 64 MiB
  ltc_buffer* first = create(LTC_F32, large);
  try {
    create(LTC_F32, large);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kResourceExhausted) << error.what();
  }
  device_->destroy_buffer(first);
  ltc_buffer* second = create(LTC_F32, large);  // the first one's release has to run before
  device_->destroy_buffer(second);
  check("graph(%0: f32[5]) {\n%1: f32[5] = aten::neg(%0)\nreturn %1 }", "u", {0, 0});
}

// ---- a device that is lost

class LostCudaDevice : public CudaOnEmulator {
 protected:
  void TearDown() override {
    executables_.clear();  // they ended with the device
    if (of_driver<void>("cuInit")) lose(0, CUDA_SUCCESS, false);
  }
  static void lose(uint64_t launches, CUresult error, bool for_good) {
    of_driver<void(int, uint64_t, CUresult, int)>("ltc_emulator_lose_device")(0, launches, error, for_good);
  }
  // Two launches.
  std::string run_program() {
    const Graph graph = decompose::minimal_form(parse(R"(graph(%0: f32[4,32]) {
      %1: f32[4,1] = aten::sum.dim_IntList(%0) {dim=[1],keepdim=true,dtype=none}
      %2: f32[4,32] = aten::add.Tensor(%0, %1) {alpha=1}
      %3: f32[1,32] = aten::sum.dim_IntList(%2) {dim=[0],keepdim=true,dtype=none}
      %4: f32[4,32] = aten::add.Tensor(%2, %3) {alpha=1}
      return %4 })"));
    const conformance::Inputs inputs = conformance::inputs_for(graph, "u");
    const auto expected = conformance::evaluate(graph, inputs.arrays, inputs.scalars);
    buffers_.push_back(upload(inputs.arrays[0]));
    buffers_.push_back(run(build(graph), {buffers_[0]}, 1)[0]);
    return conformance::difference(download(buffers_[1], graph.type(graph.outputs[0])), expected[0], {64, 1});
  }
  // The message; empty: it was no loss.
  template <typename Work>
  static std::string loss(Work&& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.code() == Code::kDeviceLost) return error.what();
      ADD_FAILURE() << error.what();
    }
    return "";
  }
  void reopen() {
    device_->reopen([&] { return std::exchange(buffers_, {}); });
    executables_.clear();
  }

  std::vector<ltc_buffer*> buffers_;
};

// The errors behind which CUDA says that a process cannot go on with the device, and those of one that is there no more.
TEST_F(LostCudaDevice, says_which_work_met_it_and_works_once_opened_again) {
  for (const auto& [error, name] : std::initializer_list<std::pair<CUresult, const char*>>{
           {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN (unknown error)"},
           {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE (CUDA-capable device(s) is/are busy or unavailable)"},
           {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED (unspecified launch failure)"},
           {CUDA_ERROR_ECC_UNCORRECTABLE, "error 214"},
           {CUDA_ERROR_NVLINK_UNCORRECTABLE, "error 220"},
           {static_cast<CUresult>(226), "error 226"},
           {static_cast<CUresult>(721), "error 721"},
           {CUDA_ERROR_MPS_CLIENT_TERMINATED, "error 810"},
           {CUDA_ERROR_EXTERNAL_DEVICE, "error 911"}}) {
    lose(1, error, false);
    const std::string said = loss([&] { run_program(); });
    EXPECT_THAT(said, testing::HasSubstr("emulator 0 failed at or before run 0 (")) << name;
    EXPECT_THAT(said, testing::HasSubstr(name));
    EXPECT_THAT(loss([&] { create(LTC_F32, {4}); }), testing::HasSubstr(name));
    reopen();
    EXPECT_EQ(run_program(), "") << name;
    for (ltc_buffer* buffer : std::exchange(buffers_, {})) device_->destroy_buffer(buffer);
    for (ltc_executable* one : std::exchange(executables_, {})) device_->destroy_executable(one);
  }
}

TEST_F(LostCudaDevice, is_lost_for_all_who_opened_it_until_the_last_has_closed_it) {
  auto second = plugin_->open_device(0);
  lose(0, CUDA_ERROR_UNKNOWN, false);
  EXPECT_NE(loss([&] { run_program(); }), "");
  auto type = host::sized<ltc_type>();
  type.dtype = LTC_F32;
  EXPECT_THAT(loss([&] { second->create_buffer(type); }), testing::HasSubstr("CUDA_ERROR_UNKNOWN (unknown error)"));
  EXPECT_THAT(loss([&] { reopen(); }),
              testing::HasSubstr("cuDevicePrimaryCtxRetain answered CUDA_ERROR_UNKNOWN (unknown error)"));
  second.reset();
  reopen();
  EXPECT_EQ(run_program(), "");
}

TEST_F(LostCudaDevice, that_is_gone_for_good_can_be_closed_and_leaves_the_others_alone) {
  lose(0, CUDA_ERROR_DEVICE_UNAVAILABLE, true);
  EXPECT_NE(loss([&] { run_program(); }), "");
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(loss([&] { reopen(); }), testing::HasSubstr("cuDevicePrimaryCtxRetain answered CUDA_ERROR_DEVICE_UNAVAILABLE"));
  device_ = plugin_->open_device(1);
  EXPECT_EQ(run_program(), "");
}

}  // namespace
}  // namespace ltc::cuda
