// What needs no GPU: finding libraries and saying what is missing, compiling kernels, how products are put to cuBLASLt.
#include "blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "compiler.h"
#include "conformance/ops/cases.h"
#include "conformance/ops/reference.h"
#include "core/compile/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/host/plugin.h"
#include "core/ir/text.h"
#include "device/recipe.h"
#include "dnn.h"
#include "driver_api.h"
#include "lowering.h"

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
  EXPECT_THAT(message, HasSubstr("was not found in the system's folders, LTC_CUDA_PATH, CUDA_HOME or nvidia-* packages"));
  EXPECT_THAT(message, HasSubstr("pip install nvidia-cuda-nvrtc"));
}

TEST(CudaLibraries, a_missing_cublaslt_is_no_error) { EXPECT_EQ(BlasApi::load({}, 11), nullptr); }

TEST(CudaLibraries, folders_of_the_variables_are_searched) {
  setenv("LTC_CUDA_PATH", "/one:/two", 1);
  setenv("CUDA_HOME", "/three", 1);
  const SearchPath path = standard_search_path();
  unsetenv("LTC_CUDA_PATH");
  unsetenv("CUDA_HOME");
  EXPECT_THAT(path.first, testing::ElementsAre("/one", "/two"));
  EXPECT_THAT(path.then, testing::Contains("/three/lib64"));
}

TEST(CudaWays, are_left_out_by_name) {
  const Ways ways = ways_without("blocks,cudnn");
  EXPECT_FALSE(ways.blocks || ways.cudnn);
  EXPECT_TRUE(ways.pieces && ways.attention && ways.cublas);
  EXPECT_EQ(left_out(ways), "blocks,cudnn");
  EXPECT_EQ(left_out({}), "");
  try {
    ways_without("blocks,cuda");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.error().code, ltc_code{LTC_INVALID_ARGUMENT});
    EXPECT_THAT(failure.what(), HasSubstr("names 'cuda'; it may name blocks,"));
  }
}

// ---- devices

std::string why_no_device(const char* driver_folder) {
  setenv("LTC_CUDA_PATH", driver_folder, 1);
  const host::PluginInfo info = host::Plugin::load(LTC_CUDA_PLUGIN)->describe();
  unsetenv("LTC_CUDA_PATH");
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
  setenv("LTC_CUDA_PATH", LTC_EMPTY_DRIVER_FOLDER, 1);
  const auto plugin = host::Plugin::load(LTC_CUDA_PLUGIN);
  try {
    plugin->open_device(0);
    ADD_FAILURE() << "opened";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("no CUDA device: cuInit answered error 100"));
  }
  unsetenv("LTC_CUDA_PATH");
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
    const kernels::Plan plan = kernels::make_plan(*AbiGraph(graph).get(), lowering_for({.cublas = blas, .cudnn = false}).options);
    for (const kernels::Step& step : plan.steps) {
      if (!std::holds_alternative<kernels::Product>(step.work)) kernels.insert(render(step, kernels::cuda_dialect()).text);
    }
  }
}

// Attention of each type and tile, with its gradients; large and long rows.
void add_large_kernels(std::set<std::string>& kernels) {
  for (const std::string dtype : {"f32", "f16", "bf16"}) {
    for (const std::string width : {"64", "128"}) {
      for (const std::string mask : {"", "bool[2,1,1,300]", "f32[200,300]", "f16[2,4,200,300]"}) {
        const std::string q = dtype + "[2,4,200," + width + "]", k = dtype + "[2,2,300," + width + "]", logs = "f32[2,4,200]";
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
  for (const char* text : {R"(graph(%0: f32[8192,4096], %1: f32[4096], %2: bf16[8192,4096], %3: i64[4194304]) {
         %4: f32[8192,4096] = aten::add.Tensor(%0, %1) {alpha=1}
         %5: bf16[8192,4096] = aten::_to_copy(%4) {dtype=bf16}
         %6: f32[8192] = aten::sum.dim_IntList(%4) {dim=[1],keepdim=false,dtype=none}
         %7: f32[4096] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=none}
         %8: f32[] = aten::amax(%0) {dim=[0,1],keepdim=false}
         %9: i64[8192] = aten::argmax(%0) {dim=1,keepdim=false}
         %10: bool[8192,4096] = aten::lt.Tensor(%0, %1)
         %11: i64[] = aten::sum.dim_IntList(%3) {dim=[0],keepdim=false,dtype=none}
         return %5, %6, %7, %8, %9, %10, %11 })"})
    add_kernels(parse(text), kernels);
}

// Every op of the conformance suite, and its programs.
std::vector<std::string> all_kernels() {
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
  add_large_kernels(kernels);
  return {kernels.begin(), kernels.end()};
}

void compile_all(int capability) {
  const std::vector<std::string> kernels = all_kernels();
  ASSERT_GT(kernels.size(), 200u);
  const std::string code = compiler()->compile(kernels::program_text(kernels, kernels::cuda_dialect()), capability);
  EXPECT_THAT(code, StartsWith("\x7f"
                               "ELF"));
  EXPECT_THAT(code, HasSubstr("ltc_kernel_" + std::to_string(kernels.size() - 1)));
}

TEST(CudaKernels, all_become_machine_code_of_ampere) {
  LTC_NEEDS_COMPILER();
  compile_all(80);
}

TEST(CudaKernels, all_become_machine_code_of_hopper) {
  LTC_NEEDS_COMPILER();
  compile_all(90);
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

// ---- products

// cublasLtMatmul as its documentation defines it, for whole numbers: column-major D = op(A) op(B).
std::vector<double> as_blas_computes(const BlasCall& call, const std::vector<double>& b, const std::vector<double>& a) {
  const auto element = [](const std::vector<double>& buffer, const BlasOperand& m, int64_t batch, uint64_t row, uint64_t column) {
    if (m.operation == lt::kTransposed) std::swap(row, column);
    return buffer.at(static_cast<size_t>(m.offset + batch * m.batch_stride) + row + column * static_cast<size_t>(m.leading));
  };
  const uint64_t length = call.first.operation == lt::kAsIs ? call.first.columns : call.first.rows;
  std::vector<double> result(static_cast<size_t>(call.batch) * call.result.rows * call.result.columns, -1);
  for (int64_t batch = 0; batch < call.batch; ++batch) {
    for (uint64_t i = 0; i < call.result.rows; ++i) {
      for (uint64_t j = 0; j < call.result.columns; ++j) {
        double sum = 0;
        for (uint64_t k = 0; k < length; ++k) sum += element(b, call.first, batch, i, k) * element(a, call.second, batch, k, j);
        result.at(static_cast<size_t>(batch * call.result.batch_stride) + i + j * static_cast<size_t>(call.result.leading)) = sum;
      }
    }
  }
  return result;
}

double strided(const std::vector<double>& buffer, const kernels::StridedMatrix& m, int64_t batch, int64_t row, int64_t column) {
  return buffer.at(static_cast<size_t>(m.offset + batch * m.batch + row * m.row + column * m.column));
}

void check_product(const kernels::Product& product) {
  std::vector<double> a(2000), b(2000), expected;
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 11), b[i] = static_cast<double>(i * 5 % 13);
  for (int64_t batch = 0; batch < product.batch; ++batch) {
    for (int64_t i = 0; i < product.rows; ++i) {
      for (int64_t j = 0; j < product.columns; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < product.length; ++k)
          sum += strided(a, product.a, batch, i, k) * strided(b, product.b, batch, k, j);
        expected.push_back(sum);
      }
    }
  }
  EXPECT_EQ(as_blas_computes(blas_call(product), b, a), expected);
}

TEST(CudaProducts, are_described_as_blas_computes_them) {
  using M = kernels::StridedMatrix;
  const auto product = [](int64_t batch, int64_t rows, int64_t columns, int64_t length, M a, M b) {
    check_product({LTC_F32, batch, rows, columns, length, a, b, LTC_F32});
  };
  product(1, 3, 5, 4, {0, 0, 0, 4, 1}, {1, 0, 0, 5, 1});    // as they are
  product(1, 3, 5, 4, {0, 0, 0, 1, 3}, {1, 0, 0, 5, 1});    // the first transposed
  product(1, 3, 5, 4, {0, 0, 0, 4, 1}, {1, 0, 0, 1, 4});    // the second transposed: x @ w.t()
  product(2, 3, 5, 4, {0, 7, 20, 9, 1}, {1, 3, 50, 1, 6});  // pieces of larger ones
  product(3, 3, 5, 4, {0, 0, 0, 4, 1}, {1, 0, 20, 5, 1});   // one matrix for all
  product(1, 1, 5, 4, {0, 0, 0, 0, 1}, {1, 0, 0, 5, 1});    // a row
  product(1, 1, 5, 4, {0, 0, 0, 0, 3}, {1, 0, 0, 5, 1});    // a row that lies down a column
  product(1, 3, 1, 4, {0, 0, 0, 4, 1}, {1, 0, 0, 1, 0});    // a column
  product(1, 3, 1, 4, {0, 0, 0, 4, 1}, {1, 0, 0, 7, 0});    // a column of a matrix
  product(2, 1, 1, 1, {0, 0, 1, 0, 0}, {1, 0, 1, 0, 0});    // numbers
}

TEST(CudaProducts, operands_that_blas_cannot_take_are_refused) {
  using M = kernels::StridedMatrix;
  EXPECT_FALSE(kernels::blas_matrix(M{0, 0, 0, 8, 2}, 3, 4));   // every second column
  EXPECT_FALSE(kernels::blas_matrix(M{0, 0, 0, 0, 1}, 3, 4));   // a row for all
  EXPECT_FALSE(kernels::blas_matrix(M{0, 9, 0, -4, 1}, 3, 4));  // flipped
  EXPECT_TRUE(kernels::blas_matrix(M{0, 0, 0, 4, 1}, 3, 4));
}

TEST(CudaProducts, promise_the_alignment_that_holds_for_each_matrix) {
  const BlasCall call = blas_call({LTC_F16, 2, 8, 8, 8, {0, 0, 64, 8, 1}, {1, 4, 72, 8, 1}, LTC_F32});
  EXPECT_EQ(call.second.alignment_bytes, 128u);
  EXPECT_EQ(call.first.alignment_bytes, 8u);
  EXPECT_EQ(call.result.alignment_bytes, 256u);  // of F32
}

// A transposed weight is read where it lies; a product of every second column is not.
TEST(CudaProducts, views_reach_the_library_as_strides) {
  const auto steps_of = [](const std::string& text) {
    return kernels::make_plan(*AbiGraph(parse(text)).get(), lowering_for({.cudnn = false}).options).steps;
  };
  const auto transposed = steps_of(R"(graph(%0: f32[1,16,32], %1: f32[1,64,32]) {
    %2: f32[1,32,64] = aten::permute(%1) {dims=[0,2,1]}
    %3: f32[1,16,64] = aten::bmm(%0, %2)
    return %3 })");
  ASSERT_EQ(transposed.size(), 1u);
  const auto& product = std::get<kernels::Product>(transposed[0].work);
  EXPECT_EQ(blas_call(product).first.operation, lt::kTransposed);
  EXPECT_EQ(blas_call(product).first.leading, 32);
  const auto sparse = steps_of(R"(graph(%0: f32[1,16,64], %1: f32[1,32,64]) {
    %2: f32[1,16,32] = aten::slice.Tensor(%0) {dim=2, start=0, end=64, step=2}
    %3: f32[1,16,64] = aten::bmm(%2, %1)
    return %3 })");
  ASSERT_EQ(sparse.size(), 2u);
}

// A product of halves that were widened is one of halves; its result is narrowed where that is all that is made of it.
TEST(CudaProducts, of_widened_halves_are_products_of_halves) {
  const auto product_of = [](const std::string& end) {
    const std::string text = R"(graph(%0: bf16[16,32], %1: bf16[64,32]) {
      %2: f32[16,32] = aten::_to_copy(%0) {dtype=f32}
      %3: f32[64,32] = aten::_to_copy(%1) {dtype=f32}
      %4: f32[32,64] = aten::permute(%3) {dims=[1,0]}
      %5: f32[1,16,32] = aten::reshape(%2) {shape=[1,16,32]}
      %6: f32[1,32,64] = aten::reshape(%4) {shape=[1,32,64]}
      %7: f32[1,16,64] = aten::bmm(%5, %6)
      %8: f32[16,64] = aten::reshape(%7) {shape=[16,64]}
      )";
    const auto steps = kernels::make_plan(*AbiGraph(parse(text + end)).get(), lowering_for({.cudnn = false}).options).steps;
    return std::get<kernels::Product>(steps.at(0).work);
  };
  const kernels::Product narrowed = product_of("%9: bf16[16,64] = aten::_to_copy(%8) {dtype=bf16}\nreturn %9 }");
  EXPECT_EQ(narrowed.dtype, ltc_dtype{LTC_BF16});
  EXPECT_EQ(narrowed.b.value, 1u);
  const kernels::Product wide = product_of("return %8 }");
  EXPECT_EQ(wide.dtype, ltc_dtype{LTC_BF16});
  EXPECT_EQ(wide.result, ltc_dtype{LTC_F32});
}

// ---- convolutions

CUdeviceptr address_of(std::vector<float>& memory) { return reinterpret_cast<CUdeviceptr>(memory.data()); }

// The steps of the graph, which a stub of cuDNN computes, against the reference's.
void check_convolutions(const std::string& text) {
  const auto api = DnnApi::load(only(LTC_STUB_CUDNN_FOLDER));
  ASSERT_NE(api, nullptr);
  std::vector<float> workspace(64);
  Dnn dnn(*api, address_of(workspace));
  const ltc::Graph graph = parse(text);
  const kernels::Plan plan = kernels::make_plan(*AbiGraph(graph).get(), lowering_for({}).options);
  std::vector<std::vector<float>> memory;
  for (const kernels::Value& value : plan.graph.values) memory.emplace_back(static_cast<size_t>(value.count));
  std::vector<conformance::Array> inputs;
  for (const ltc::Param& param : graph.params) {
    conformance::Array& array = inputs.emplace_back(DType::kF32, graph.type(param.value).sizes);
    for (int64_t i = 0; i < array.count(); ++i) {
      const auto value = static_cast<float>((i * 7 + param.value * 3) % 11 - 5);
      array.set_real(i, memory[param.value][static_cast<size_t>(i)] = value);
    }
  }
  for (const kernels::Step& step : plan.steps) {
    std::vector<CUdeviceptr> buffers;
    for (const kernels::KernelBuffer& buffer : step.buffers) buffers.push_back(address_of(memory[buffer.value]));
    const auto call = dnn.convolution(std::get<kernels::LibraryConvolution>(step.work));
    call->launch(buffers, reinterpret_cast<CUstream>(&workspace));
  }
  const auto expected = conformance::evaluate(decompose::minimal_form(graph), inputs, {});
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<float>& got = memory[graph.outputs[i]];
    for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], expected[i].real(static_cast<int64_t>(k))) << i << " of " << text;
  }
}

std::string convolution_graph(const std::string& x, const std::string& w, const std::string& y, const std::string& how) {
  const std::string dims = how + "}\n", channels = "[" + y.substr(3, 1) + "]";
  return "graph(%0: f32" + x + ", %1: f32" + w + ", %2: f32" + y + ") {\n%3: f32" + y + " = aten::convolution(%0, %1, none) {" +
         dims + "%4: f32" + x + ", %5: f32" + w + ", %6: f32" + channels +
         " = aten::convolution_backward(%2, %0, %1) {bias_sizes=none," + how + ",output_mask=[1,1,0]}\nreturn %3, %4, %5 }";
}

TEST(CudaConvolutions, are_put_to_the_library_as_it_defines_them) {
  check_convolutions(
      convolution_graph("[2,3,8,9]", "[4,3,3,2]", "[2,4,4,5]",
                        "stride=[2,2],padding=[1,1],dilation=[1,2],transposed=false,output_padding=[0,0],groups=1"));
  check_convolutions(
      convolution_graph("[2,4,7,6]", "[6,2,3,3]", "[2,6,5,4]",
                        "stride=[1,1],padding=[0,0],dilation=[1,1],transposed=false,output_padding=[0,0],groups=2"));
  check_convolutions(convolution_graph("[1,2,10]", "[3,2,4]", "[1,3,5]",
                                       "stride=[2],padding=[1],dilation=[1],transposed=false,output_padding=[0],groups=1"));
  check_convolutions(
      convolution_graph("[2,4,5,4]", "[4,3,3,2]", "[2,6,10,9]",
                        "stride=[2,2],padding=[1,0],dilation=[1,2],transposed=true,output_padding=[1,0],groups=2"));
  check_convolutions(
      convolution_graph("[1,2,4,5,3]", "[2,2,2,3,2]", "[1,2,3,5,4]",
                        "stride=[1,1,1],padding=[0,1,1],dilation=[1,1,1],transposed=false,output_padding=[0,0,0],groups=1"));
}

TEST(CudaConvolutions, are_kept_in_saved_executables) {
  const ltc::Graph graph =
      parse(convolution_graph("[2,4,5,4]", "[4,3,3,2]", "[2,6,10,9]",
                              "stride=[2,2],padding=[1,0],dilation=[1,2],transposed=true,output_padding=[1,0],groups=2"));
  const device::Lowering lowering = lowering_for({});
  const kernels::Plan plan = kernels::make_plan(*AbiGraph(graph).get(), lowering.options);
  const device::Recipe recipe = device::make_recipe(plan, lowering);
  ASSERT_EQ(recipe.library.size(), 3u);
  std::vector<std::string> binaries(recipe.sources.size(), "code");
  const std::string bytes = device::write_recipe(recipe, binaries, "device");
  EXPECT_EQ(device::read_recipe(bytes, binaries, "device").library, recipe.library);
}

}  // namespace
}  // namespace ltc::cuda
