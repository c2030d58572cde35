// Products of floats of 8 bits: what is claimed, and how it is put to cuBLASLt, with a stub that computes on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"
#include "cuda/blas.h"
#include "cuda/lowering.h"
#include "device/compiled_plan.h"
#include "kernels/fuse/import.h"
#include "kernels/graph/dtype.h"

namespace ltc::cuda {
namespace {

using ::testing::HasSubstr;

// ---- graphs

struct Form {
  std::string a = "f8e4m3fn[32,48]", b = "f8e4m3fn[16,48]", scale_a = "f32[]", scale_b = "f32[1]", result = "bf16[32,16]";
  std::string bias;  // empty: none
  std::string scale_result = "none";
  bool fast = false;
};

// b is transposed, as torch._scaled_mm demands it.
std::string text_of(const Form& form) {
  const std::string types = form.b.substr(0, form.b.find('['));
  const size_t open = form.b.find('['), comma = form.b.find(',');
  const std::string rows = form.b.substr(open + 1, comma - open - 1), length = form.b.substr(comma + 1);
  return "graph(%0: " + form.a + ", %1: " + form.b + ", %2: " + form.scale_a + ", %3: " + form.scale_b +
         (form.bias.empty() ? "" : ", %4: " + form.bias) + ") {\n%5: " + types + "[" + length.substr(0, length.size() - 1) + "," +
         rows + "] = aten::permute(%1) {dims=[1,0]}\n%6: " + form.result + " = aten::_scaled_mm(%0, %5, %2, %3, " +
         (form.bias.empty() ? "none" : "%4") + ", " + form.scale_result +
         ") {out_dtype=" + form.result.substr(0, form.result.find('[')) + ", use_fast_accum=" + (form.fast ? "true" : "false") +
         "}\nreturn %6 }";
}

bool claims(const std::string& text, const Features& features) {
  const ltc::Graph graph = parse(text);
  const AbiGraph abi(graph);
  const plugin::Graph given(*abi.get());
  bool all = true;
  for (size_t i = 0; i < given.size(); ++i) {
    const bool taken = kernels::can_compute(given.node(i), lowering_for(features).options.extras);
    EXPECT_TRUE(taken || given.node(i).name() == "aten::_scaled_mm") << text;
    all = all && taken;
  }
  return all;
}
bool claims(const Form& form, int capability = 90) { return claims(text_of(form), features_of({}, capability)); }

TEST(CudaScaledProducts, are_claimed_as_the_library_takes_them) {
  EXPECT_TRUE(claims({}));
  EXPECT_TRUE(claims({}, 89));
  EXPECT_TRUE(claims({.scale_a = "f32[1,1]", .bias = "bf16[16]", .fast = true}));
  EXPECT_TRUE(claims({.result = "f16[32,16]", .bias = "f16[16]"}));
  EXPECT_TRUE(claims({.result = "f32[32,16]"}));
  EXPECT_TRUE(claims({.a = "f8e5m2[32,48]"}));
  EXPECT_TRUE(claims({.b = "f8e5m2[16,48]"}));
  EXPECT_TRUE(claims({.a = "f8e4m3fn[1,48]", .result = "bf16[1,16]"}));
}

TEST(CudaScaledProducts, in_other_forms_are_left_to_the_cpu) {
  EXPECT_FALSE(claims({}, 80));
  EXPECT_FALSE(claims({}, 86));
  EXPECT_FALSE(claims(text_of({}), features_without("fp8")));
  EXPECT_FALSE(claims(text_of({}), features_without("cublas")));
  EXPECT_FALSE(claims({.a = "f8e5m2[32,48]", .b = "f8e5m2[16,48]"}));
  EXPECT_FALSE(claims({.a = "bf16[32,48]", .b = "bf16[16,48]"}));
  EXPECT_FALSE(claims({.a = "f8e4m3fnuz[32,48]"}));
  // row by row
  EXPECT_FALSE(claims({.scale_a = "f32[32,1]", .scale_b = "f32[1,16]"}));
  EXPECT_FALSE(claims({.a = "f8e4m3fn[1,48]", .scale_a = "f32[1,1]", .scale_b = "f32[1,16]", .result = "bf16[1,16]"}));
  EXPECT_FALSE(claims({.scale_b = "f64[]"}));
  EXPECT_FALSE(claims({.scale_a = "f32 scalar"}));
  // sizes
  EXPECT_FALSE(claims({.a = "f8e4m3fn[32,40]", .b = "f8e4m3fn[16,40]"}));
  EXPECT_FALSE(claims({.b = "f8e4m3fn[24,48]", .result = "bf16[32,24]"}));
  EXPECT_FALSE(claims({.a = "f8e4m3fn[0,48]", .result = "bf16[0,16]"}));
  EXPECT_FALSE(claims({.a = "f8e4m3fn[32,0]", .b = "f8e4m3fn[16,0]"}));
  // results
  EXPECT_FALSE(claims({.result = "f8e4m3fn[32,16]"}));
  EXPECT_FALSE(claims({.scale_result = "%2"}));
  EXPECT_FALSE(claims({.result = "f32[32,16]", .bias = "f32[16]"}));
  EXPECT_FALSE(claims({.result = "f32[32,16]", .bias = "bf16[16]"}));
  EXPECT_FALSE(claims({.bias = "f16[16]"}));
  EXPECT_FALSE(claims({.bias = "bf16[1]"}));
  EXPECT_FALSE(claims({.bias = "bf16[1,16]"}));
  EXPECT_FALSE(claims({.bias = "bf16[]"}));
}

// ---- what they compute

device::CompiledPlan compiled_plan_of(const std::string& text) {
  const device::Lowering lowering = lowering_for({});
  return device::compile_plan(kernels::make_plan(*AbiGraph(parse(text)).get(), lowering.options), lowering);
}

device::CompiledPlan saved_and_read(const device::CompiledPlan& compiled_plan) {
  std::vector<std::string> binaries(compiled_plan.sources.size(), "code");
  const std::string bytes = device::write_compiled_plan(compiled_plan, binaries, "device");
  return device::read_compiled_plan(bytes, binaries, "device");
}

// Numbers that both types hold, and their bits.
struct Eighth {
  double value;
  unsigned char e4m3, e5m2;
};
constexpr Eighth kEighths[] = {{0, 0, 0},        {1, 0x38, 0x3c},        {-1.5, 0xbc, 0xbe}, {0.25, 0x28, 0x34},
                               {-2, 0xc0, 0xc0}, {0.015625, 0x08, 0x24}, {3, 0x44, 0x42}};
const Eighth& eighth(size_t buffer, int64_t i) { return kEighths[(i * 5 + i / 7 + static_cast<int64_t>(buffer) * 3) % 7]; }

class CudaScaledProductCalls : public testing::Test {
 protected:
  static constexpr double kScales[] = {1.5, 0.25};

  // The largest difference from what the op is defined as, for the product that a saved executable gives back.
  double error_of(const Form& form) {
    const device::CompiledPlan compiled_plan = saved_and_read(compiled_plan_of(text_of(form)));
    EXPECT_EQ(compiled_plan.launches.size(), 1u);
    std::vector<std::vector<char>> memory;
    for (const auto* types : {&compiled_plan.inputs, &compiled_plan.outputs}) {
      for (const device::TensorType& type : *types) memory.emplace_back(type.bytes());
    }
    fill(compiled_plan, memory);
    const device::Launch& launch = compiled_plan.launches.at(0);
    std::vector<CUdeviceptr> buffers;
    for (const device::Binding& binding : launch.buffers) {
      const size_t at = binding.kind == device::Binding::Kind::kInput ? binding.index : compiled_plan.inputs.size();
      buffers.push_back(reinterpret_cast<CUdeviceptr>(memory.at(at).data()));
    }
    blas_.product(blas_call(std::get<kernels::Product>(compiled_plan.library.at(launch.library))))->launch(buffers, stream_);
    return difference(compiled_plan, memory);
  }

  template <typename T = int>
  T asked(const char* what) const {
    T (*function)() = nullptr;
    Library::open(versions_of("libcublasLt.so", 13), {{LTC_STUB_LIBRARIES_FOLDER}, {}}).resolve(what, function);
    return function();
  }

 private:
  static double bias(int64_t i) { return static_cast<double>(i) - 5; }

  // As many bits of an F32 as a BF16 has, rounded to the nearest even.
  static float to_bf16(float value) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
  }

  static void fill(const device::CompiledPlan& compiled_plan, std::vector<std::vector<char>>& memory) {
    for (size_t input = 0; input < 2; ++input) {
      const bool e4m3 = compiled_plan.inputs[input].dtype == LTC_F8_E4M3FN;
      for (size_t i = 0; i < memory[input].size(); ++i) {
        const Eighth& one = eighth(input, static_cast<int64_t>(i));
        memory[input][i] = static_cast<char>(e4m3 ? one.e4m3 : one.e5m2);
      }
      const auto scale = static_cast<float>(kScales[input]);
      std::memcpy(memory[2 + input].data(), &scale, sizeof scale);
    }
    if (compiled_plan.inputs.size() < 5) return;
    for (size_t i = 0; i < memory[4].size() / 2; ++i) {
      const auto value = static_cast<float>(bias(static_cast<int64_t>(i)));
      std::memcpy(&memory[4][2 * i], reinterpret_cast<const char*>(&value) + 2, 2);
    }
  }

  static double difference(const device::CompiledPlan& compiled_plan, const std::vector<std::vector<char>>& memory) {
    const auto &a = compiled_plan.inputs[0].sizes, &b = compiled_plan.inputs[1].sizes;
    const bool wide = compiled_plan.outputs[0].dtype == LTC_F32;
    double worst = 0;
    for (int64_t i = 0; i < a[0]; ++i) {
      for (int64_t j = 0; j < b[0]; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < a[1]; ++k) sum += eighth(0, i * a[1] + k).value * eighth(1, j * b[1] + k).value;
        sum = sum * kScales[0] * kScales[1] + (compiled_plan.inputs.size() > 4 ? bias(j) : 0);
        const auto at = static_cast<size_t>(i * b[0] + j);
        float got = 0;
        std::memcpy(reinterpret_cast<char*>(&got) + (wide ? 0 : 2), &memory.back()[at * (wide ? 4 : 2)], wide ? 4 : 2);
        worst = std::max(worst, std::abs(got - (wide ? sum : to_bf16(static_cast<float>(sum)))));
      }
    }
    return worst;
  }

  const std::unique_ptr<const BlasApi> api_ = BlasApi::load({{LTC_STUB_LIBRARIES_FOLDER}, {}}, 13);
  std::vector<char> workspace_ = std::vector<char>(256);
  Blas blas_{*api_, reinterpret_cast<CUdeviceptr>(workspace_.data())};
  const CUstream stream_ = reinterpret_cast<CUstream>(&workspace_);
};

TEST_F(CudaScaledProductCalls, compute_what_the_op_is_defined_as) {
  EXPECT_EQ(error_of({}), 0);
  EXPECT_EQ(asked("ltc_stub_scale"), 64 * 0.25);  // of the library's first operand, which is b
  EXPECT_EQ(error_of({.result = "f32[32,16]"}), 0);
  EXPECT_EQ(error_of({.bias = "bf16[16]"}), 0);
  EXPECT_EQ(error_of({.b = "f8e5m2[16,48]", .result = "f32[32,16]"}), 0);
  EXPECT_EQ(error_of({.b = "f8e5m2[16,48]", .bias = "bf16[16]"}), 0);
  EXPECT_EQ(error_of({.a = "f8e5m2[32,48]", .bias = "bf16[16]"}), 0);
  EXPECT_EQ(error_of({.a = "f8e4m3fn[1,48]", .result = "bf16[1,16]"}), 0);
  EXPECT_EQ(error_of({.a = "f8e4m3fn[5,64]", .b = "f8e4m3fn[32,64]", .result = "bf16[5,32]", .bias = "bf16[32]"}), 0);
}

TEST_F(CudaScaledProductCalls, are_summed_quickly_where_the_program_says_so) {
  EXPECT_EQ(error_of({}), 0);
  EXPECT_EQ(asked("ltc_stub_fast"), 0);
  EXPECT_EQ(asked("ltc_stub_schemes"), lt::kReduceInComputeType);
  EXPECT_EQ(error_of({.fast = true}), 0);
  EXPECT_EQ(asked("ltc_stub_fast"), 1);
}

TEST(CudaScaledProducts, are_kept_in_saved_executables) {
  const device::CompiledPlan compiled_plan = compiled_plan_of(text_of({.b = "f8e5m2[16,48]", .bias = "bf16[16]", .fast = true}));
  EXPECT_THAT(compiled_plan.text(), HasSubstr("scaled_mm+bias: [1,32,48] by [1,48,16], in fast sums, by the library"));
  const auto& product = std::get<kernels::Product>(compiled_plan.library.at(0));
  EXPECT_EQ(product.dtype, ltc_dtype{LTC_F8_E4M3FN});
  EXPECT_EQ(product.scaled_b, ltc_dtype{LTC_F8_E5M2});
  const device::CompiledPlan read = saved_and_read(compiled_plan);
  EXPECT_EQ(read.library, compiled_plan.library);
  EXPECT_EQ(read.launches.at(0).buffers.size(), 6u);
}

// ---- where operands lie

std::vector<kernels::Step> steps_of(const std::string& text) {
  return kernels::make_plan(*AbiGraph(parse(text)).get(), lowering_for({}).options).steps;
}
std::string sliced(int64_t from) {
  return "graph(%0: f8e4m3fn[32,64], %1: f8e4m3fn[16,48], %2: f32[], %3: f32[]) {\n%4: f8e4m3fn[32,48] = aten::slice.Tensor(%0) "
         "{dim=1, start=" +
         std::to_string(from) + ", end=" + std::to_string(from + 48) +
         ", step=1}\n%5: f8e4m3fn[48,16] = aten::permute(%1) {dims=[1,0]}\n%6: f32[32,16] = aten::_scaled_mm(%4, %5, %2, %3, "
         "none, "
         "none) {out_dtype=f32, use_fast_accum=false}\nreturn %6 }";
}

TEST(CudaScaledProducts, read_rows_where_they_lie_if_the_library_can) {
  const auto in_place = steps_of(sliced(16)), copied = steps_of(sliced(8));
  ASSERT_EQ(in_place.size(), 1u);
  EXPECT_EQ(std::get<kernels::Product>(in_place[0].work).a, (kernels::StridedMatrix{0, 16, 0, 64, 1}));
  ASSERT_EQ(copied.size(), 2u);
  const auto& product = std::get<kernels::Product>(copied[1].work);
  EXPECT_EQ(product.a, (kernels::StridedMatrix{4, 0, 0, 48, 1}));
  EXPECT_EQ(product.b, (kernels::StridedMatrix{1, 0, 0, 1, 48}));
}

TEST(CudaScaledProducts, transpose_what_lies_the_other_way_round) {
  const auto steps = steps_of(R"(graph(%0: f8e4m3fn[32,48], %1: f8e4m3fn[48,16], %2: f32[], %3: f32[]) {
    %4: f32[32,16] = aten::_scaled_mm(%0, %1, %2, %3, none, none) {out_dtype=f32, use_fast_accum=false}
    return %4 })");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<kernels::Kernel>(steps[0].work));
  const BlasCall call = blas_call(std::get<kernels::Product>(steps[1].work));
  EXPECT_EQ(steps[1].buffers[1].value, steps[0].buffers.back().value);
  EXPECT_EQ(call.first.operation, lt::kTransposed);
  EXPECT_EQ(call.first.leading, 48);
  EXPECT_EQ(call.second.operation, lt::kAsIs);
}

}  // namespace
}  // namespace ltc::cuda
