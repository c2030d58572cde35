// The text of kernels, so that a change of the generator shows what it changes: one file per graph in golden/, with what was
// fused and each dialect's kernels. LTC_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"
#include "kernels/plan/planner.h"
#include "kernels/print/vectors.h"

namespace ltc::kernels {
namespace {

struct Golden {
  const char* name;
  const char* graph;
  bool checks_indices = false;
};

constexpr Golden kGoldens[] = {
    {"chain", R"(graph(%0: f32[8,5], %1: f32[5], %2: f64 scalar) {
      %3: f32[] = aten::_to_copy(%2) {dtype=f32}
      %4: f32[8,5] = aten::mul.Tensor(%0, %3)
      %5: f32[8,5] = aten::add.Tensor(%4, %1) {alpha=1}
      %6: f32[8,5] = aten::tanh(%5)
      %7: bool[8,5] = aten::lt.Tensor(%6, %0)
      return %6, %7 })"},
    {"vectors", R"(graph(%0: f32[2,300], %1: f32[600], %2: f64 scalar) {
      %3: f32[] = aten::_to_copy(%2) {dtype=f32}
      %4: f32[600] = aten::reshape(%0) {shape=[600]}
      %5: f32[600] = aten::mul.Tensor(%4, %3)
      %6: bool[600] = aten::lt.Tensor(%5, %1)
      %7: f32[600] = aten::where.self(%6, %5, %1)
      %8: f32[600] = aten::maximum(%7, %4)
      return %8, %6 })"},
    {"functions_in_vectors", R"(graph(%0: f32[2048], %1: f32[2048]) {
      %2: f32[2048] = aten::mul.Tensor(%0, %1)
      %3: f32[2048] = aten::tanh(%2)
      %4: f32[2048] = aten::exp(%3)
      %5: f32[2048] = aten::div.Tensor(%4, %0)
      %6: bool[2048] = aten::lt.Tensor(%5, %1)
      %7: f32[2048] = aten::where.self(%6, %5, %1)
      %8: f32[2048] = aten::maximum(%7, %0)
      return %8, %2 })"},
    {"in_place", R"(graph(%0: f32[8,5] -> 0, %1: f32[8,5] -> 1, %2: f32[8,5]) {
      %3: f32[8,5] = aten::add.Tensor(%0, %2) {alpha=1}
      %4: f32[8,5] = aten::mul.Tensor(%1, %3)
      return %3, %4 })"},
    {"views", R"(graph(%0: f32[4,6], %1: f32[3,4]) {
      %2: f32[6,4] = aten::permute(%0) {dims=[1,0]}
      %3: f32[2,3,4] = aten::reshape(%2) {shape=[2,3,4]}
      %4: f32[2,3,4] = aten::flip(%3) {dims=[2]}
      %5: f32[2,3,4] = aten::add.Tensor(%4, %1) {alpha=1}
      %6: f32[2,3,2] = aten::slice.Tensor(%5) {dim=2,start=1,end=3,step=1}
      %7: f32[2,3,4] = aten::constant_pad_nd(%6) {pad=[1,1],value=0.5}
      return %7 })"},
    {"softmax", R"(graph(%0: f32[32,100]) {
      %1: f32[32,1] = aten::amax(%0) {dim=[1],keepdim=true}
      %2: f32[32,1] = aten::neg(%1)
      %3: f32[32,100] = aten::add.Tensor(%0, %2) {alpha=1}
      %4: f32[32,100] = aten::exp(%3)
      %5: f32[32,1] = aten::sum.dim_IntList(%4) {dim=[1],keepdim=true,dtype=f32}
      %6: f32[32,100] = aten::div.Tensor(%4, %5)
      return %6 })"},
    {"column_sums", R"(graph(%0: f32[32,100], %1: f32[100]) {
      %2: f32[32,100] = aten::mul.Tensor(%0, %0)
      %3: f32[100] = aten::sum.dim_IntList(%2) {dim=[0],keepdim=false,dtype=f32}
      %4: f32[100] = aten::add.Tensor(%3, %1) {alpha=1}
      %5: i64[32] = aten::argmax(%0) {dim=1,keepdim=false}
      return %4, %5 })"},
    {"column_sums_in_vectors", R"(graph(%0: f32[32,2048]) {
      %1: f32[2048] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=f32}
      return %1 })"},
    {"gather_and_cat", R"(graph(%0: f32[8,3], %1: i64[5,3], %2: f32[2,3]) {
      %3: f32[5,3] = aten::gather(%0, %1) {dim=0,sparse_grad=false}
      %4: f32[7,3] = aten::cat(%3, %2) {tensors.count=2,dim=0}
      return %4 })"},
    {"checked_gather", R"(graph(%0: f32[8], %1: i64[300], %2: f32[300]) {
      %3: f32[300] = aten::gather(%0, %1) {dim=0,sparse_grad=false}
      %4: f32[8] = aten::scatter_add(%0, %1, %2) {dim=0}
      return %3, %4 })",
     true},
    {"dropout", R"(graph(%0: f32[10,10], %1: i64 scalar, %2: i64 scalar, %3: f32[]) {
      %4: f32[10,10] = ltc::philox(%1, %2) {size=[10,10],dtype=f32}
      %5: bool[10,10] = aten::lt.Tensor(%4, %3)
      %6: f32[10,10] = aten::_to_copy(%5) {dtype=f32}
      %7: f32[10,10] = aten::mul.Tensor(%0, %6)
      return %7, %5 })"},
    {"casts", R"(graph(%0: bf16[6], %1: i64[6]) {
      %2: f32[6] = aten::_to_copy(%0) {dtype=f32}
      %3: i32[6] = aten::_to_copy(%2) {dtype=i32}
      %4: f16[6] = aten::_to_copy(%1) {dtype=f16}
      %5: i32[6] = aten::view.dtype(%2) {dtype=i32}
      %6: i32[6] = aten::remainder.Tensor(%3, %5)
      return %4, %6 })"},
    {"scatter_add", R"(graph(%0: f32[8,2], %1: i64[9,2], %2: f32[9,2]) {
      %3: f32[8,2] = aten::scatter_add(%0, %1, %2) {dim=0}
      return %3 })"},
    {"cumsum", R"(graph(%0: i32[3,4,2]) {
      %1: i32[3,4,2] = aten::cumsum(%0) {dim=1,dtype=i32}
      return %1 })"},
    {"cumsum_of_rows", R"(graph(%0: f32[2,100]) {
      %1: f32[2,100] = aten::cumsum(%0) {dim=1,dtype=none}
      return %1 })"},
    {"cumsum_of_columns", R"(graph(%0: f32[3,100,40]) {
      %1: f32[3,100,40] = aten::cumsum(%0) {dim=1,dtype=none}
      return %1 })"},
    {"sort", R"(graph(%0: f32[7,3]) {
      %1: f32[7,3], %2: i64[7,3] = aten::sort.stable(%0) {stable=true,dim=0,descending=true}
      return %1, %2 })"},
    {"convolution", R"(graph(%0: f32[2,3,8,8], %1: f32[4,3,3,3], %2: f32[4,1,1]) {
      %3: f32[2,4,4,4] = aten::convolution(%0, %1, none) {stride=[2,2],padding=[1,1],dilation=[1,1],transposed=false,output_padding=[0,0],groups=1}
      %4: f32[2,4,4,4] = aten::add.Tensor(%3, %2) {alpha=1}
      return %4 })"},
};

// Whether the dialect of host vectors is for the step.
bool is_in_float_lanes(const Step& step) {
  const auto* kernel = std::get_if<Kernel>(&step.work);
  const auto is_float = [](const auto& argument) { return argument.dtype == LTC_F32; };
  return kernel && kernel->blocks.size() == 1 && items_are_lanes(*kernel) && std::ranges::all_of(step.buffers, is_float) &&
         std::ranges::all_of(step.scalars, is_float);
}

std::string generated(const Golden& golden) {
  const ltc::Graph graph = parse(golden.graph);
  const Plan plan = make_plan(*AbiGraph(graph).get(), {.check_indices = golden.checks_indices});
  std::string text = print(graph) + "\n" + plan.fusion.text(plan.graph);
  for (const Dialect* dialect : {&opencl_dialect(), &cuda_dialect(), &host_dialect(), &host_vector_dialect()}) {
    for (const Step& step : plan.steps) {
      if (dialect == &host_vector_dialect() && !is_in_float_lanes(step)) continue;
      const std::string kernel = render(step, *dialect).text;
      text += "\n---- " + std::string(dialect->name) + ": " + step.label + "\n" + functions_for(kernel, *dialect) + kernel;
    }
  }
  return text;
}

class GoldenTest : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenTest, text_is_as_it_was) {
  const std::string path = std::string(LTC_GOLDEN_FOLDER) + "/" + GetParam().name + ".txt";
  const std::string text = generated(GetParam());
  if (std::getenv("LTC_UPDATE_GOLDEN")) std::ofstream(path) << text;
  std::ifstream file(path);
  std::stringstream known;
  known << file.rdbuf();
  EXPECT_EQ(text, known.str()) << path << ": LTC_UPDATE_GOLDEN=1 writes it anew";
}

INSTANTIATE_TEST_SUITE_P(Graphs, GoldenTest, ::testing::ValuesIn(kGoldens),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ltc::kernels
