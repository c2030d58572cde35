// How products are put to cuBLASLt and convolutions to cuDNN, with stubs of both that compute on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "conformance/ops/reference.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"
#include "cuda/blas.h"
#include "cuda/dnn.h"
#include "cuda/lowering.h"
#include "device/compiled_plan.h"

namespace ltc::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SearchPath only(const std::string& folder) { return {{folder}, {}}; }

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

// ---- what libraries compute

constexpr uint64_t kBytes = 256;  // of a workspace

// A graph whose steps are all a library's, with the stubs of both, on values that sums of halves hold exactly, unless the divisor
// is no power of two.
class OnStubs {
 public:
  explicit OnStubs(const std::string& text, const Features& features = {.activations = true}, bool rounds = false,
                   double divisor = 4)
      : graph_(parse(text)), workspace_(kBytes), stream_(reinterpret_cast<CUstream>(&workspace_)) {
    device::Lowering lowering = lowering_for(features);
    lowering.options.rounding = {rounds, rounds, rounds, rounds};
    plan_ = kernels::make_plan(*AbiGraph(graph_).get(), lowering.options);
    for (const kernels::Value& value : plan_.graph.values)
      memory_.emplace_back(static_cast<size_t>(value.count) * (value.dtype == LTC_BF16 ? 2 : 4));
    for (const ltc::Param& param : graph_.params) {
      conformance::Array& array = inputs_.emplace_back(graph_.type(param.value).dtype, graph_.type(param.value).sizes);
      for (int64_t i = 0; i < array.count(); ++i)
        array.set_real(i, static_cast<double>((i * 7 + param.value * 3) % 11 - 5) / divisor);
      std::memcpy(memory_[param.value].data(), array.bytes.data(), array.bytes.size());
    }
  }

  const kernels::Plan& plan() const { return plan_; }
  std::string notes() const { return plan_.fusion.text(plan_.graph); }

  void run(Blas& blas, Dnn& dnn) {
    for (const kernels::Step& step : plan_.steps) {
      std::vector<CUdeviceptr> buffers;
      for (const kernels::KernelBuffer& buffer : step.buffers)
        buffers.push_back(reinterpret_cast<CUdeviceptr>(memory_[buffer.value].data()));
      const auto* product = std::get_if<kernels::Product>(&step.work);
      const auto call =
          product ? blas.product(blas_call(*product)) : dnn.convolution(std::get<kernels::LibraryConvolution>(step.work));
      call->launch(buffers, stream_);
    }
  }

  // The largest difference from the reference among the outputs.
  double error() const {
    const auto expected = conformance::evaluate(decompose::minimal_form(graph_), inputs_, {});
    double error = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      conformance::Array got(expected[i].dtype, expected[i].sizes);
      std::memcpy(got.bytes.data(), memory_[graph_.outputs[i]].data(), got.bytes.size());
      for (int64_t k = 0; k < got.count(); ++k) error = std::max(error, std::abs(got.real(k) - expected[i].real(k)));
    }
    return error;
  }

 private:
  const ltc::Graph graph_;
  kernels::Plan plan_;
  std::vector<char> workspace_;
  const CUstream stream_;
  std::vector<std::vector<char>> memory_;  // by value
  std::vector<conformance::Array> inputs_;
};

class CudaLibraryCalls : public testing::Test {
 protected:
  // The largest difference from the reference.
  double error_of(OnStubs stubs) {
    stubs.run(blas_, dnn_);
    return stubs.error();
  }

  const std::unique_ptr<const BlasApi> blas_api_ = BlasApi::load(only(LTC_STUB_LIBRARIES_FOLDER), 13);
  const std::unique_ptr<const DnnApi> dnn_api_ = DnnApi::load(only(LTC_STUB_LIBRARIES_FOLDER));
  std::vector<char> workspace_ = std::vector<char>(kBytes);
  Blas blas_{*blas_api_, reinterpret_cast<CUdeviceptr>(workspace_.data())};
  Dnn dnn_{*dnn_api_, reinterpret_cast<CUdeviceptr>(workspace_.data())};
};

// ---- products with what follows them

// As the host's decompositions give a layer of 16 rows, 8 into 24 columns; `end` works on %8, its result.
std::string layer(const std::string& end) {
  return R"(graph(%0: f32[24], %1: f32[2,8,8], %2: f32[24,8]) {
    %3: f32[8,24] = aten::permute(%2) {dims=[1,0]}
    %4: f32[1,8,24] = aten::reshape(%3) {shape=[1,8,24]}
    %5: f32[1,16,8] = aten::reshape(%1) {shape=[1,16,8]}
    %6: f32[1,16,24] = aten::bmm(%5, %4)
    %7: f32[16,24] = aten::reshape(%6) {shape=[16,24]}
    %8: f32[16,24] = aten::add.Tensor(%7, %0) {alpha=1}
    %9: f32[2,8,24] = aten::reshape(%8) {shape=[2,8,24]}
    )" + end;
}

constexpr const char* kRelu = R"(%10: i64[] = aten::full() {size=[], fill_value=0, dtype=i64}
    %11: f32[] = aten::_to_copy(%10) {dtype=f32}
    %12: f32[2,8,24] = aten::maximum(%9, %11)
    )";
constexpr const char* kGeluByTanh = R"(%10: f32[2,8,24] = aten::mul.Tensor(%9, %9)
    %11: f32[2,8,24] = aten::mul.Tensor(%10, %9)
    %12: f64[] = aten::full() {size=[], fill_value=0.044715, dtype=f64}
    %13: f32[] = aten::_to_copy(%12) {dtype=f32}
    %14: f32[2,8,24] = aten::mul.Tensor(%11, %13)
    %15: f32[2,8,24] = aten::add.Tensor(%9, %14) {alpha=1}
    %16: f64[] = aten::full() {size=[], fill_value=0.7978845608028654, dtype=f64}
    %17: f32[] = aten::_to_copy(%16) {dtype=f32}
    %18: f32[2,8,24] = aten::mul.Tensor(%15, %17)
    %19: f32[2,8,24] = aten::tanh(%18)
    %20: i64[] = aten::full() {size=[], fill_value=1, dtype=i64}
    %21: f32[] = aten::_to_copy(%20) {dtype=f32}
    %22: f32[2,8,24] = aten::add.Tensor(%21, %19) {alpha=1}
    %23: f64[] = aten::full() {size=[], fill_value=0.5, dtype=f64}
    %24: f32[] = aten::_to_copy(%23) {dtype=f32}
    %25: f32[2,8,24] = aten::mul.Tensor(%9, %24)
    %26: f32[2,8,24] = aten::mul.Tensor(%25, %22)
    )";

kernels::Epilogue only_epilogue(const OnStubs& stubs) {
  EXPECT_EQ(stubs.plan().steps.size(), 1u) << stubs.notes();
  return std::get<kernels::Product>(stubs.plan().steps.at(0).work).epilogue;
}

TEST_F(CudaLibraryCalls, a_product_gives_its_result_in_the_sizes_that_are_wanted) {
  OnStubs stubs(R"(graph(%0: f32[1,16,32], %1: f32[1,32,64]) {
    %2: f32[1,16,64] = aten::bmm(%0, %1)
    %3: f32[16,64] = aten::reshape(%2) {shape=[16,64]}
    return %3 })");
  EXPECT_EQ(only_epilogue(stubs), kernels::Epilogue{});
  EXPECT_EQ(error_of(std::move(stubs)), 0);
}

TEST_F(CudaLibraryCalls, a_layer_is_one_product) {
  OnStubs stubs(layer("return %9 }"));
  EXPECT_EQ(only_epilogue(stubs), (kernels::Epilogue{.bias = true}));
  EXPECT_THAT(stubs.notes(), HasSubstr("%8 = aten::add.Tensor is part of the product %6: a vector added to its rows"));
  EXPECT_EQ(error_of(std::move(stubs)), 0);
}

TEST_F(CudaLibraryCalls, a_layer_with_a_function_is_one_product) {
  OnStubs relu(layer(std::string(kRelu) + "return %12 }"));
  EXPECT_EQ(only_epilogue(relu), (kernels::Epilogue{true, kernels::Activation::kRelu}));
  EXPECT_EQ(error_of(std::move(relu)), 0);
  OnStubs gelu(layer(std::string(kGeluByTanh) + "return %26 }"));
  EXPECT_EQ(only_epilogue(gelu), (kernels::Epilogue{true, kernels::Activation::kGelu}));
  EXPECT_LT(error_of(std::move(gelu)), 1e-5);
}

TEST_F(CudaLibraryCalls, what_a_function_reads_is_kept_where_others_want_it) {
  OnStubs gelu(layer(std::string(kGeluByTanh) + "return %8, %26 }"));
  EXPECT_EQ(only_epilogue(gelu), (kernels::Epilogue{true, kernels::Activation::kGelu, true}));
  EXPECT_LT(error_of(std::move(gelu)), 1e-5);
  // cuBLASLt keeps bits of relu, not what it reads.
  OnStubs relu(layer(std::string(kRelu) + "return %8, %12 }"));
  EXPECT_EQ(std::get<kernels::Product>(relu.plan().steps.at(0).work).epilogue, (kernels::Epilogue{.bias = true}));
  EXPECT_EQ(relu.plan().steps.size(), 2u);
}

TEST_F(CudaLibraryCalls, functions_are_left_to_kernels_unless_they_are_asked_for) {
  OnStubs stubs(layer(std::string(kRelu) + "return %12 }"), {});
  EXPECT_EQ(std::get<kernels::Product>(stubs.plan().steps.at(0).work).epilogue, (kernels::Epilogue{.bias = true}));
  OnStubs none(layer("return %9 }"), features_without("epilogues"));
  EXPECT_EQ(std::get<kernels::Product>(none.plan().steps.at(0).work).epilogue, kernels::Epilogue{});
}

TEST_F(CudaLibraryCalls, a_layer_of_halves_is_one_product_of_halves) {
  const std::string text = R"(graph(%0: bf16[24], %1: bf16[16,8], %2: bf16[24,8]) {
    %3: f32[24,8] = aten::_to_copy(%2) {dtype=f32}
    %4: f32[8,24] = aten::permute(%3) {dims=[1,0]}
    %5: f32[1,8,24] = aten::reshape(%4) {shape=[1,8,24]}
    %6: f32[16,8] = aten::_to_copy(%1) {dtype=f32}
    %7: f32[1,16,8] = aten::reshape(%6) {shape=[1,16,8]}
    %8: f32[1,16,24] = aten::bmm(%7, %5)
    %9: f32[16,24] = aten::reshape(%8) {shape=[16,24]}
    %10: f32[24] = aten::_to_copy(%0) {dtype=f32}
    %11: f32[16,24] = aten::add.Tensor(%9, %10) {alpha=1}
    %12: bf16[16,24] = aten::_to_copy(%11) {dtype=bf16}
    )";
  OnStubs layer(text + "return %12 }");
  EXPECT_EQ(only_epilogue(layer), (kernels::Epilogue{.bias = true}));
  EXPECT_EQ(error_of(std::move(layer)), 0);
  OnStubs relu(text + R"(%13: f32[16,24] = aten::_to_copy(%12) {dtype=f32}
    %14: f32[] = aten::full() {size=[], fill_value=0.0, dtype=f32}
    %15: f32[16,24] = aten::maximum(%13, %14)
    %16: bf16[16,24] = aten::_to_copy(%15) {dtype=bf16}
    return %16 })");
  EXPECT_EQ(only_epilogue(relu), (kernels::Epilogue{true, kernels::Activation::kRelu}));
  EXPECT_EQ(error_of(std::move(relu)), 0);
}

TEST_F(CudaLibraryCalls, what_is_no_vector_for_the_rows_stays_apart) {
  const auto notes_of = [](const std::string& type, const std::string& before = "", const std::string& other = "%2") {
    return OnStubs("graph(%0: f32[1,16,32], %1: f32[1,32,16], %2: " + type + ") {\n" + before +
                   "%3: f32[1,16,16] = aten::bmm(%0, %1)\n%4: f32[1,16,16] = aten::add.Tensor(%3, " + other +
                   ") {alpha=1}\nreturn %4 }")
        .notes();
  };
  const std::string is_apart = " = aten::add.Tensor is not part of the product ";
  EXPECT_THAT(notes_of("f32[1,16,16]"), AllOf(HasSubstr(is_apart), HasSubstr(": adds no vector to its rows")));
  EXPECT_THAT(notes_of("f32[16,1]"), AllOf(HasSubstr(is_apart), HasSubstr(": adds no vector to its rows")));
  EXPECT_THAT(notes_of("f32[16]", "%9: f32[16] = aten::neg(%2)\n", "%9"),
              AllOf(HasSubstr(is_apart), HasSubstr(": the vector would need a kernel of its own")));
}

TEST_F(CudaLibraryCalls, are_asked_for_once_per_form) {
  const auto algorithm_of = [&](const std::string& end, bool rounds = false) {
    OnStubs stubs(layer(end), {.activations = true}, rounds);
    return blas_.product(blas_call(std::get<kernels::Product>(stubs.plan().steps.at(0).work)));
  };
  const auto first = algorithm_of("return %9 }");
  EXPECT_EQ(algorithm_of("return %9 }"), first);
  EXPECT_NE(algorithm_of(std::string(kRelu) + "return %12 }"), first);
  EXPECT_NE(algorithm_of("return %9 }", true), first);
}

// The stubs round like TF32 where they are told to compute in it.
TEST_F(CudaLibraryCalls, are_exact_unless_the_program_allows_more) {
  const std::string product = "graph(%0: f32[1,8,16], %1: f32[1,16,8]) { %2: f32[1,8,8] = aten::bmm(%0, %1)\n return %2 }";
  const std::string convolution = R"(graph(%0: f32[1,2,8,8], %1: f32[3,2,3,3]) {
    %2: f32[1,3,6,6] = aten::convolution(%0, %1, none)
      {stride=[1,1],padding=[0,0],dilation=[1,1],transposed=false,output_padding=[0,0],groups=1}
    return %2 })";
  for (const std::string& text : {product, convolution}) {
    EXPECT_LT(error_of(OnStubs(text, {}, false, 3)), 1e-6) << text;
    EXPECT_GT(error_of(OnStubs(text, {}, true, 3)), 1e-5) << text;
  }
}

TEST_F(CudaLibraryCalls, of_halves_are_summed_in_halves_only_where_the_program_allows_it) {
  int (*schemes)() = nullptr;
  Library::open(versions_of("libcublasLt.so", 13), only(LTC_STUB_LIBRARIES_FOLDER)).resolve("ltc_stub_schemes", schemes);
  const std::string text = R"(graph(%0: bf16[1,16,8], %1: bf16[1,8,24]) {
    %2: f32[1,16,8] = aten::_to_copy(%0) {dtype=f32}
    %3: f32[1,8,24] = aten::_to_copy(%1) {dtype=f32}
    %4: f32[1,16,24] = aten::bmm(%2, %3)
    %5: bf16[1,16,24] = aten::_to_copy(%4) {dtype=bf16}
    return %5 })";
  EXPECT_EQ(error_of(OnStubs(text)), 0);
  EXPECT_EQ(schemes(), lt::kReduceInComputeType);
  EXPECT_EQ(error_of(OnStubs(text, {}, true)), 0);
  EXPECT_EQ(schemes(), lt::kAnyReduction);
}

// ---- convolutions

std::string convolution_graph(const std::string& x, const std::string& w, const std::string& y, const std::string& how) {
  const std::string dims = how + "}\n", channels = "[" + y.substr(3, 1) + "]";
  return "graph(%0: f32" + x + ", %1: f32" + w + ", %2: f32" + y + ") {\n%3: f32" + y + " = aten::convolution(%0, %1, none) {" +
         dims + "%4: f32" + x + ", %5: f32" + w + ", %6: f32" + channels +
         " = aten::convolution_backward(%2, %0, %1) {bias_sizes=none," + how + ",output_mask=[1,1,0]}\nreturn %3, %4, %5 }";
}

TEST_F(CudaLibraryCalls, convolutions_are_put_to_the_library_as_it_defines_them) {
  EXPECT_EQ(error_of(OnStubs(
                convolution_graph("[2,3,8,9]", "[4,3,3,2]", "[2,4,4,5]",
                                  "stride=[2,2],padding=[1,1],dilation=[1,2],transposed=false,output_padding=[0,0],groups=1"))),
            0);
  EXPECT_EQ(error_of(OnStubs(
                convolution_graph("[2,4,7,6]", "[6,2,3,3]", "[2,6,5,4]",
                                  "stride=[1,1],padding=[0,0],dilation=[1,1],transposed=false,output_padding=[0,0],groups=2"))),
            0);
  EXPECT_EQ(
      error_of(OnStubs(convolution_graph("[1,2,10]", "[3,2,4]", "[1,3,5]",
                                         "stride=[2],padding=[1],dilation=[1],transposed=false,output_padding=[0],groups=1"))),
      0);
  EXPECT_EQ(error_of(OnStubs(
                convolution_graph("[2,4,5,4]", "[4,3,3,2]", "[2,6,10,9]",
                                  "stride=[2,2],padding=[1,0],dilation=[1,2],transposed=true,output_padding=[1,0],groups=2"))),
            0);
  EXPECT_EQ(error_of(OnStubs(convolution_graph(
                "[1,2,4,5,3]", "[2,2,2,3,2]", "[1,2,3,5,4]",
                "stride=[1,1,1],padding=[0,1,1],dilation=[1,1,1],transposed=false,output_padding=[0,0,0],groups=1"))),
            0);
}

TEST(CudaConvolutions, are_kept_in_saved_executables) {
  const ltc::Graph graph =
      parse(convolution_graph("[2,4,5,4]", "[4,3,3,2]", "[2,6,10,9]",
                              "stride=[2,2],padding=[1,0],dilation=[1,2],transposed=true,output_padding=[1,0],groups=2"));
  const device::Lowering lowering = lowering_for({});
  const kernels::Plan plan = kernels::make_plan(*AbiGraph(graph).get(), lowering.options);
  const device::CompiledPlan compiled_plan = device::compile_plan(plan, lowering);
  ASSERT_EQ(compiled_plan.library.size(), 3u);
  std::vector<std::string> binaries(compiled_plan.sources.size(), "code");
  const std::string bytes = device::write_compiled_plan(compiled_plan, binaries, "device");
  EXPECT_EQ(device::read_compiled_plan(bytes, binaries, "device").library, compiled_plan.library);
}

TEST(CudaProducts, with_what_follows_them_are_kept_in_saved_executables) {
  const ltc::Graph graph = parse(layer(std::string(kGeluByTanh) + "return %8, %26 }"));
  device::Lowering lowering = lowering_for({.activations = true});
  lowering.options.rounding.products_in_tf32 = true;
  const device::CompiledPlan compiled_plan =
      device::compile_plan(kernels::make_plan(*AbiGraph(graph).get(), lowering.options), lowering);
  EXPECT_THAT(compiled_plan.text(), HasSubstr("bmm+bias+gelu: [1,16,8] by [1,8,24], in TF32, by the library"));
  std::vector<std::string> binaries(compiled_plan.sources.size(), "code");
  const std::string bytes = device::write_compiled_plan(compiled_plan, binaries, "device");
  const device::CompiledPlan read = device::read_compiled_plan(bytes, binaries, "device");
  EXPECT_EQ(read.library, compiled_plan.library);
  EXPECT_EQ(read.launches.at(0).buffers.size(), 5u);
}

}  // namespace
}  // namespace ltc::cuda
