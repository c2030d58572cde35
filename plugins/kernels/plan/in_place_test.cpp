// Which outputs may take over the memory of a param: wrong answers here would be wrong results.
#include <gtest/gtest.h>

#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"
#include "kernels/plan/planner.h"

namespace ltc::kernels {
namespace {

// The params that the outputs take over, "-" for none.
std::string taken(const std::string& graph_text, const Options& options = {}) {
  const ltc::Graph graph = parse(graph_text);
  std::string text;
  for (const ValueId param : make_plan(*AbiGraph(graph).get(), options).takes_over) {
    text += (text.empty() ? "" : " ") + (param == kNone ? "-" : "%" + std::to_string(param));
  }
  return text;
}

TEST(InPlace, what_is_read_where_it_is_written) {
  EXPECT_EQ(taken("graph(%0: f32[4] -> 0, %1: f32[4]) { %2: f32[4] = aten::add.Tensor(%0, %1) {alpha=1} return %2 }"), "%0");
  EXPECT_EQ(taken("graph(%0: f32[2,3] -> 0) { %1: f32[2,3] = aten::mul.Tensor(%0, %0) return %1 }"), "%0");
}

TEST(InPlace, not_without_leave) { EXPECT_EQ(taken("graph(%0: f32[4]) { %1: f32[4] = aten::neg(%0) return %1 }"), "-"); }

TEST(InPlace, an_optimizer_s_step) {
  EXPECT_EQ(taken(R"(graph(%0: f32[9] -> 0, %1: f32[9] -> 1, %2: f32[9]) {
    %3: f32[9] = aten::mul.Tensor(%1, %2)
    %4: f32[9] = aten::add.Tensor(%3, %2) {alpha=1}
    %5: f32[9] = aten::mul.Tensor(%4, %1)
    %6: f32[9] = aten::add.Tensor(%0, %5) {alpha=1}
    return %6, %4 })"),
            "%0 %1");
}

TEST(InPlace, a_reshaped_param_lies_as_before) {
  EXPECT_EQ(taken("graph(%0: f32[4,2] -> 0) { %1: f32[8] = aten::reshape(%0) {shape=[8]} %2: f32[8] = aten::neg(%1) return %2 }"),
            "%0");
}

TEST(InPlace, elements_read_elsewhere) {
  EXPECT_EQ(taken("graph(%0: f32[4] -> 0) { %1: f32[4] = aten::flip(%0) {dims=[0]} %2: f32[4] = aten::neg(%1) return %2 }"), "-");
  EXPECT_EQ(taken(R"(graph(%0: f32[3,3] -> 0) {
    %1: f32[3,3] = aten::permute(%0) {dims=[1,0]}
    %2: f32[3,3] = aten::add.Tensor(%0, %1) {alpha=1}
    return %2 })"),
            "-");
  EXPECT_EQ(taken(R"(graph(%0: f32[4] -> 0, %1: i64[4]) {
    %2: f32[4] = aten::gather(%0, %1) {dim=0,sparse_grad=false}
    return %2 })"),
            "-");
}

TEST(InPlace, a_part_that_others_read_whole) {
  EXPECT_EQ(taken(R"(graph(%0: f32[4] -> 0) {
    %1: f32[1] = aten::slice.Tensor(%0) {dim=0,start=0,end=1,step=1}
    %2: f32[4] = aten::add.Tensor(%0, %1) {alpha=1}
    return %2 })"),
            "-");
}

TEST(InPlace, a_later_reader) {
  EXPECT_EQ(taken(R"(graph(%0: f32[300,4] -> 0) {
    %1: f32[300,4] = aten::neg(%0)
    %2: f32[4] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=f32}
    return %1, %2 })"),
            "- -");
}

TEST(InPlace, an_earlier_reader_in_another_kernel) {
  EXPECT_EQ(taken(R"(graph(%0: f32[4] -> 0) {
    %1: f32[4] = aten::cumsum(%0) {dim=0,dtype=f32}
    %2: f32[4] = aten::flip(%1) {dims=[0]}
    %3: f32[4] = aten::neg(%2)
    return %3 })"),
            "%0");
}

// The second loop reads the row again, but the sum of the first needs all of it.
TEST(InPlace, rows_that_are_read_twice) {
  EXPECT_EQ(taken(R"(graph(%0: f32[32,40] -> 0) {
    %1: f32[32,1] = aten::sum.dim_IntList(%0) {dim=[1],keepdim=true,dtype=f32}
    %2: f32[32,40] = aten::div.Tensor(%0, %1)
    return %2 })"),
            "-");
}

TEST(InPlace, crosswise_in_one_kernel) {
  EXPECT_EQ(taken(R"(graph(%0: f32[4] -> 1, %1: f32[4] -> 0) {
    %2: f32[4] = aten::neg(%0)
    %3: f32[4] = aten::mul.Tensor(%1, %2)
    return %2, %3 })"),
            "- %0");
}

TEST(InPlace, a_scatter_writes_into_what_it_copies) {
  const char* graph = R"(graph(%0: f32[8,2] -> 0, %1: i64[3,2], %2: f32[3,2]) {
    %3: f32[8,2] = aten::scatter.src(%0, %1, %2) {dim=0}
    return %3 })";
  EXPECT_EQ(taken(graph), "%0");
  EXPECT_EQ(taken(R"(graph(%0: f32[8,2] -> 0, %1: i64[8,2]) {
    %2: f32[8,2] = aten::neg(%0)
    %3: f32[8,2] = aten::scatter.src(%0, %1, %2) {dim=0}
    return %3 })"),
            "-")
      << "what is scattered is computed from the param as it was";
}

TEST(InPlace, a_library_s_product) {
  Options options;
  options.library_product = [](ltc_dtype, int64_t, int64_t, int64_t, int64_t) { return true; };
  EXPECT_EQ(taken("graph(%0: f32[1,4,4] -> 0, %1: f32[1,4,4]) { %2: f32[1,4,4] = aten::bmm(%0, %1) return %2 }", options), "-");
}

}  // namespace
}  // namespace ltc::kernels
