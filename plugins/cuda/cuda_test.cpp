// Tests that need no GPU: finding libraries, naming the missing ones, compiling kernels.
#include "cuda/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "conformance/ops/cases.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"
#include "core/ir/text.h"
#include "cuda/compiler.h"
#include "cuda/driver_api.h"
#include "cuda/lowering.h"
#include "device/compiled_plan.h"

namespace ltc::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, ltc_code{LTC_NOT_FOUND});
    return failure.error().message;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

// ---- libraries

SearchPath only(const std::string& folder) { return {{folder}, {}}; }

TEST(CudaLibraries, an_old_driver_is_named_with_what_it_lacks) {
  const std::string message = message_of([] { DriverApi::load(only(LTC_OLD_DRIVER_FOLDER)); });
  EXPECT_THAT(message, StartsWith(LTC_OLD_DRIVER_FOLDER));
  EXPECT_THAT(message, HasSubstr("has no function cuDriverGetVersion: it is too old"));
}

TEST(CudaLibraries, a_missing_compiler_is_named_with_the_way_to_get_it) {
  // A driver of CUDA 11 takes no library that is searched for.
  const std::string message = message_of([] { Compiler({}, 11); });
  EXPECT_THAT(message, HasSubstr("was not found in the system's folders, the option path, CUDA_HOME or nvidia-* packages"));
  EXPECT_THAT(message, HasSubstr("pip install nvidia-cuda-nvrtc"));
}

TEST(CudaLibraries, a_missing_cublaslt_is_no_error) { EXPECT_EQ(BlasApi::load({}, 11), nullptr); }

TEST(CudaLibraries, folders_of_the_variables_are_searched) {
  setenv("CUDA_HOME", "/three", 1);
  const SearchPath path = standard_search_path("/one:/two");
  unsetenv("CUDA_HOME");
  EXPECT_THAT(path.first, testing::ElementsAre("/one", "/two"));
  EXPECT_THAT(path.then, testing::Contains("/three/lib64"));
}

TEST(CudaFeatures, are_left_out_by_name) {
  const Features features = features_without("coop_reduce+cudnn,attention_mma");
  EXPECT_FALSE(features.coop_reduce || features.cudnn || features.attention_mma);
  EXPECT_TRUE(features.split_reduce && features.attention && features.cublas);
  EXPECT_FALSE(lowering_for(features).options.extras.attention_mma);
  EXPECT_TRUE(lowering_for({}).options.extras.attention_mma);
  EXPECT_EQ(disabled(features), "coop_reduce,attention_mma,cudnn");
  EXPECT_EQ(disabled({}), "");
  EXPECT_EQ(disabled(features_without("fp8")), "fp8");
  EXPECT_TRUE(lowering_for({}).options.block_sorts);
  EXPECT_FALSE(lowering_for(features_without("block_sort")).options.block_sorts);
  try {
    features_without("coop_reduce,cuda");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, ltc_code{LTC_INVALID_ARGUMENT});
    EXPECT_THAT(failure.what(), HasSubstr("names 'cuda'; it may name coop_reduce,"));
  }
}

TEST(CudaFeatures, of_doubtful_exactness_are_taken_by_name) {
  EXPECT_TRUE(chosen_features("", "activations").activations);
  EXPECT_EQ(disabled(chosen_features("", "activations")), " with activations");
  EXPECT_FALSE(chosen_features("", "").activations);
}

// ---- devices

std::string why_no_device(const char* driver_folder) {
  const host::PluginInfo info = host::Plugin::load(LTC_CUDA_PLUGIN, {{"path", driver_folder}})->describe();
  EXPECT_EQ(info.device_count, 0u);
  return info.why_no_device;
}

TEST(CudaPlugin, a_driver_without_a_device_gives_none_and_says_why) {
  EXPECT_THAT(why_no_device(LTC_EMPTY_DRIVER_FOLDER), StartsWith("no CUDA device: cuInit answered error 100"));
}

TEST(CudaPlugin, an_old_driver_gives_none_and_says_why) {
  EXPECT_THAT(why_no_device(LTC_OLD_DRIVER_FOLDER), StartsWith("no CUDA device: " LTC_OLD_DRIVER_FOLDER));
}

TEST(CudaPlugin, a_device_that_is_not_there_is_refused_with_the_reason) {
  const auto plugin = host::Plugin::load(LTC_CUDA_PLUGIN, {{"path", LTC_EMPTY_DRIVER_FOLDER}});
  try {
    plugin->open_device(0);
    ADD_FAILURE() << "opened";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("no CUDA device: cuInit answered error 100"));
  }
}

// ---- kernels

const Compiler* compiler() {
  static const auto found = std::string(LTC_NVRTC_FOLDER).empty() ? nullptr : new Compiler(only(LTC_NVRTC_FOLDER), 99);
  return found;
}
#define LTC_NEEDS_COMPILER() \
  if (!compiler()) GTEST_SKIP() << "no NVRTC where this was configured: pip install nvidia-cuda-nvrtc"

void add_kernels(const ltc::Graph& graph, std::set<std::string>& kernels) {
  for (const bool blas : {false, true}) {
    const Features features{.cublas = blas, .cudnn = false, .attention_mma = blas};
    const kernels::Plan plan = kernels::make_plan(*AbiGraph(graph).get(), lowering_for(features).options);
    for (const kernels::Step& step : plan.steps) {
      if (!std::holds_alternative<kernels::Product>(step.work)) kernels.insert(render(step, kernels::cuda_dialect()).text);
    }
  }
}

// Attention of each type, tile and way, with its gradients. Without a mask there are rows enough for the largest tiles.
void add_attention(std::set<std::string>& kernels) {
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    for (const std::string width : {"64", "128"}) {
      for (const std::string mask : {"", "bool[2,1,1,300]", "f16[2,4,200,300]"}) {
        const std::string rows = mask.empty() ? "4096" : "200", logs = "f32[2,4," + rows + "]";
        const std::string q = dtype + "[2,4," + rows + "," + width + "]", k = dtype + "[2,2,300," + width + "]";
        const std::string name = mask.empty() ? "none" : "%6", how = "{dropout_p=0.0,is_causal=true,scale=none}";
        add_kernels(parse("graph(%0: " + q + ", %1: " + q + ", %2: " + k + ", %3: " + k + ", %4: " + q + ", %5: " + logs +
                          (mask.empty() ? "" : ", %6: " + mask) + ") {\n%10: " + q + ", %11: " + logs +
                          " = aten::_scaled_dot_product_flash_attention_for_cpu(%1, %2, %3, " + name + ") " + how +
                          "\n%12: " + q + ", %13: " + k + ", %14: " + k +
                          " = aten::_scaled_dot_product_flash_attention_for_cpu_backward(%0, %1, %2, %3, %4, %5, " + name + ") " +
                          how + "\nreturn %10, %11, %12, %13, %14 }"),
                    kernels);
      }
    }
  }
}

// Large and long rows, running sums along them, sorts of all passes, scatters along few long lines.
void add_large_kernels(std::set<std::string>& kernels) {
  for (
      const char* text :
      {R"(graph(%0: f32[8192,4096], %1: f32[4096], %2: bf16[8192,4096], %3: i64[4194304]) {
         %4: f32[8192,4096] = aten::add.Tensor(%0, %1) {alpha=1}
         %5: bf16[8192,4096] = aten::_to_copy(%4) {dtype=bf16}
         %6: f32[8192] = aten::sum.dim_IntList(%4) {dim=[1],keepdim=false,dtype=none}
         %7: f32[4096] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=none}
         %8: f32[] = aten::amax(%0) {dim=[0,1],keepdim=false}
         %9: i64[8192] = aten::argmax(%0) {dim=1,keepdim=false}
         %10: bool[8192,4096] = aten::lt.Tensor(%0, %1)
         %11: i64[] = aten::sum.dim_IntList(%3) {dim=[0],keepdim=false,dtype=none}
         %12: f32[8192,4096] = aten::cumsum(%0) {dim=1,dtype=none}
         %13: f32[8192,4096] = aten::cumsum(%0) {dim=0,dtype=none}
         %14: i64[4194304] = aten::cumsum(%3) {dim=0,dtype=none}
         return %5, %6, %7, %8, %9, %10, %11, %12, %13, %14 })",
       R"(graph(%0: f32[4,50257], %1: f64[50257,4], %2: i64[100000], %3: u8[300,70]) {
         %4: f32[4,50257], %5: i64[4,50257] = aten::sort.stable(%0) {stable=true,dim=1,descending=true}
         %6: f64[50257,4], %7: i64[50257,4] = aten::sort.stable(%1) {stable=true,dim=0,descending=false}
         %8: i64[100000], %9: i64[100000] = aten::sort.stable(%2) {stable=true,dim=0,descending=false}
         %10: u8[300,70], %11: i64[300,70] = aten::sort.stable(%3) {stable=true,dim=0,descending=false}
         return %4, %5, %6, %7, %8, %9, %10, %11 })",
       R"(graph(%0: f32[50257,768], %1: i64[8,256], %2: f32[2048,768], %3: i64[10], %4: i64[1000000], %5: bf16[50,9000], %6: i64[50,4000], %7: bf16[50,4000]) {
         %8: i64[2048,1] = aten::reshape(%1) {shape=[2048,1]}
         %9: i64[2048,768] = aten::expand(%8) {size=[2048,768]}
         %10: f32[50257,768] = aten::scatter_add(%0, %9, %2) {dim=0}
         %11: i64[10] = aten::scatter_add(%3, %4, %4) {dim=0}
         %12: bf16[50,9000] = aten::scatter.src(%5, %6, %7) {dim=1}
         return %10, %11, %12 })",
       R"(graph(%0: f32[300], %1: f8e4m3fn[20,15], %2: f8e5m2[300]) {
         %3: f8e4m3fn[300] = aten::_to_copy(%0) {dtype=f8e4m3fn}
         %4: f8e5m2[300] = aten::_to_copy(%0) {dtype=f8e5m2}
         %5: f8e4m3fn[15,20] = aten::permute(%1) {dims=[1,0]}
         %6: bf16[15,20] = aten::_to_copy(%5) {dtype=bf16}
         %7: f32[300] = aten::_to_copy(%2) {dtype=f32}
         return %3, %4, %5, %6, %7 })"})
    add_kernels(parse(text), kernels);
}

// Every op of the conformance suite, and its programs.
std::vector<std::string> make_all_kernels() {
  std::set<std::string> kernels;
  for (const conformance::OpCase& row : conformance::op_cases()) {
    for (const DType dtype : conformance::dtypes_of(row.dtypes)) {
      for (const std::string& text : conformance::graphs_of(row, dtype)) add_kernels(parse(text), kernels);
    }
  }
  for (const auto& cases : {conformance::program_cases(), conformance::derived_cases()}) {
    for (const conformance::ProgramCase& row : cases) {
      add_kernels(decompose::minimal_form(parse(row.graph)), kernels);
    }
  }
  add_attention(kernels);
  add_large_kernels(kernels);
  return {kernels.begin(), kernels.end()};
}

const std::vector<std::string>& all_kernels() {
  static const std::vector<std::string> all = make_all_kernels();
  return all;
}

// In parts, which processes share: the device's capability, and the number of the part. One of the two with all optimisations.
constexpr size_t kParts = 4;
class AllCudaKernels : public testing::TestWithParam<std::tuple<int, size_t>> {};
INSTANTIATE_TEST_SUITE_P(Parts, AllCudaKernels, testing::Combine(testing::Values(80, 90), testing::Range(size_t{0}, kParts)),
                         [](const auto& info) {
                           return "sm_" + std::to_string(std::get<0>(info.param)) + "_part_" +
                                  std::to_string(std::get<1>(info.param));
                         });

TEST_P(AllCudaKernels, become_machine_code) {
  LTC_NEEDS_COMPILER();
  const auto [capability, part] = GetParam();
  std::vector<std::string> kernels;
  for (size_t i = part; i < all_kernels().size(); i += kParts) kernels.push_back(all_kernels()[i]);
  ASSERT_GT(kernels.size(), 200u / kParts);
  const auto effort = capability == 90 ? Compiler::Effort::kFull : Compiler::Effort::kLeast;
  const std::string code = compiler()->compile(kernels::program_text(kernels, kernels::cuda_dialect()), capability, effort);
  EXPECT_THAT(code, StartsWith("\x7f"
                               "ELF"));
  EXPECT_THAT(code, HasSubstr("ltc_kernel_" + std::to_string(kernels.size() - 1)));
}

TEST(CudaKernels, bear_the_names_of_their_ops) {
  const ltc::Graph graph = parse("graph(%0: f32[4]) { %1: f32[4] = aten::mul.Tensor(%0, %0) return %1 }");
  const device::Lowering lowering = lowering_for({});
  const device::CompiledPlan plan = device::compile_plan(kernels::make_plan(*AbiGraph(graph).get(), lowering.options), lowering);
  ASSERT_EQ(plan.sources.size(), 1u);
  EXPECT_EQ(plan.sources[0].function, "ltc_mul_0");
  EXPECT_THAT(plan.sources[0].text, HasSubstr("void ltc_mul_0("));
}

TEST(CudaKernels, a_device_newer_than_the_compiler_gets_portable_code) {
  LTC_NEEDS_COMPILER();
  EXPECT_THAT(compiler()->compile("extern \"C\" __global__ void ltc_kernel_0() {}", 9990), HasSubstr(".target sm_"));
}

TEST(CudaKernels, an_error_shows_its_line) {
  LTC_NEEDS_COMPILER();
  try {
    compiler()->compile("extern \"C\" __global__ void k(int* x) {\n  x[0] = 1;\n  x[1] = nonsense;\n}\n", 90);
    ADD_FAILURE() << "compiled";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("for sm_90"));
    EXPECT_THAT(failure.what(), HasSubstr("line 3:   x[1] = nonsense;"));
  }
}

}  // namespace
}  // namespace ltc::cuda
