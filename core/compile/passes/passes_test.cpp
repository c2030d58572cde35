#include "core/compile/passes/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

// Applies a pass and compares with the expected graph, up to the numbering of values.
void expect_rewrite(void (*pass)(Graph&), std::string_view from, std::string_view to) {
  Graph graph = parse(from);
  verify(graph, "parse");
  pass(graph);
  verify(graph, "the pass");
  dce(graph);
  EXPECT_TRUE(same(graph, parse(to))) << print(graph);
}

TEST(Dce, RemovesWhatNothingReadsAndKeepsParams) {
  expect_rewrite(dce, R"(graph(%0: f32[2], %1: f32[2], %2: f64 scalar) {
    %3: f32[2] = aten::neg(%0)
    %4: f32[2] = aten::exp(%1)
    %5: f32[2] = aten::sin(%4)
    %6: f32[2], %7: i64[2] = aten::max.dim(%3) {dim=0}
    return %7 })",
                 R"(graph(%0: f32[2], %1: f32[2], %2: f64 scalar) {
    %3: f32[2] = aten::neg(%0)
    _, %7: i64[2] = aten::max.dim(%3) {dim=0}
    return %7 })");
}

TEST(Dce, NumbersValuesInTheOrderOfDefinition) {
  Graph graph = parse("graph(%0: f32[2]) { %1: f32[2] = aten::sin(%0) %2: f32[2] = aten::neg(%0) return %2 }");
  dce(graph);
  EXPECT_EQ(graph.types.size(), 2u);
  EXPECT_THAT(graph.outputs, testing::ElementsAre(1));
}

TEST(Cse, MergesEqualNodesAndWhatFollows) {
  expect_rewrite(cse, R"(graph(%0: f32[2]) {
    %1: f32[2] = aten::sum(%0) {dim=[0]}
    %2: f32[2] = aten::sum(%0) {dim=[0]}
    %3: f32[2] = aten::sum(%0) {dim=[1]}
    %4: f32[2] = aten::neg(%1)
    %5: f32[2] = aten::neg(%2)
    %6: f32[2] = aten::add.Tensor(%4, %5, %3)
    return %6 })",
                 R"(graph(%0: f32[2]) {
    %1: f32[2] = aten::sum(%0) {dim=[0]}
    %3: f32[2] = aten::sum(%0) {dim=[1]}
    %4: f32[2] = aten::neg(%1)
    %6: f32[2] = aten::add.Tensor(%4, %4, %3)
    return %6 })");
}

TEST(Cse, KeepsDistinctOutputsAndDistinctSeeds) {
  const char* graph = R"(graph(%0: i64 scalar, %1: i64 scalar, %2: i64 scalar) {
    %3: f32[2] = ltc::philox(%0, %1) {size=[2], dtype=f32}
    %4: f32[2] = ltc::philox(%0, %2) {size=[2], dtype=f32}
    %5: f32[2] = aten::neg(%3)
    %6: f32[2] = aten::neg(%3)
    return %4, %5, %6 })";
  expect_rewrite(cse, graph, graph);
}

TEST(Cse, JoinsTheResultsThatEachWanted) {
  expect_rewrite(cse, R"(graph(%0: f32[2]) {
    %1: f32[], _ = aten::max.dim(%0) {dim=0}
    _, %2: i64[] = aten::max.dim(%0) {dim=0}
    %3: f32[], %4: i64[] = aten::max.dim(%0) {dim=0}
    %5: f32[] = aten::add.Tensor(%1, %3)
    return %2, %5 })",
                 R"(graph(%0: f32[2]) {
    %1: f32[], %2: i64[] = aten::max.dim(%0) {dim=0}
    %5: f32[] = aten::add.Tensor(%1, %1)
    return %2, %5 })");
}

TEST(Cse, AnOutputMayStandForAnInnerValue) {
  expect_rewrite(cse, R"(graph(%0: f32[2]) {
    %1: f32[2] = aten::neg(%0)
    %2: f32[2] = aten::neg(%0)
    %3: f32[2] = aten::exp(%1)
    return %2, %3 })",
                 R"(graph(%0: f32[2]) {
    %1: f32[2] = aten::neg(%0)
    %3: f32[2] = aten::exp(%1)
    return %1, %3 })");
}

TEST(Aliases, WithdrawnWhereTypesDiffer) {
  Graph graph = parse(R"(graph(%0: f32[2] -> 0, %1: f32[3] -> 1) {
    %2: f32[2] = aten::neg(%0)
    %3: f32[3] = aten::neg(%1)
    return %2, %3 })");
  graph.types[3] = intern_contiguous(DType::kF64, std::vector<int64_t>{3});
  aliases(graph);
  EXPECT_EQ(graph.params[0].alias_output, 0u);
  EXPECT_EQ(graph.params[1].alias_output, kNone);
}

TEST(Pipeline, RunsAll) {
  expect_rewrite([](Graph& graph) { run_passes(graph); }, R"(graph(%0: f32[2,3] -> 0) {
    %1: f32[3,2] = aten::as_strided(%0) {size=[3,2], stride=[1,3], storage_offset=0}
    %2: f32[3,2] = aten::as_strided(%0) {size=[3,2], stride=[1,3], storage_offset=none}
    %3: f32[3,2] = aten::mul.Tensor(%1, %2)
    %4: f32[2,3] = aten::as_strided(%3) {size=[2,3], stride=[1,2]}
    return %4 })",
                 R"(graph(%0: f32[2,3] -> 0) {
    %1: f32[3,2] = aten::permute(%0) {dims=[1,0]}
    %3: f32[3,2] = aten::mul.Tensor(%1, %1)
    %4: f32[2,3] = aten::permute(%3) {dims=[1,0]}
    return %4 })");
}

}  // namespace
}  // namespace ltc
