#include "core/compile/passes/overlap.h"

#include <gtest/gtest.h>

#include "core/compile/passes/passes.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

void expect_overlap(std::string_view from, std::string_view to) {
  Graph graph = parse(from);
  EXPECT_TRUE(overlap_collectives(graph));
  verify(graph, "overlap");
  EXPECT_TRUE(same(graph, parse(to))) << print(graph);
}

TEST(Overlap, LeavesOtherGraphsAlone) {
  Graph graph = parse("graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) return %1 }");
  EXPECT_FALSE(overlap_collectives(graph));
}

TEST(Overlap, AResultThatNobodyReadsIsNotWaitedFor) {
  const char* text = R"(graph(%0: f32[2]) {
    _, %1: u8[1] = ltc_c10d::all_reduce(%0, none) {op="sum", group=1}
    return %1 })";
  Graph graph = parse(text);
  EXPECT_FALSE(overlap_collectives(graph));
  EXPECT_TRUE(same(graph, parse(text)));
}

// As the hooks of data parallel training record it: a bucket's gradients while those of the layers before it are still computed.
TEST(Overlap, WaitsWhereTheResultIsNeeded) {
  expect_overlap(R"(graph(%0: f32[4], %1: f32[4], %2: f32[4], %9: u8[1], %10: f64 scalar) {
    %3: f32[4] = aten::neg(%0)
    %4: f32[4], %5: u8[1] = ltc_c10d::all_reduce(%3, %9) {op="sum", group=1}
    %6: f32[4] = aten::mul.Tensor(%4, %10)
    %7: f32[4] = aten::sin(%1)
    %8: f32[4], %11: u8[1] = ltc_c10d::all_reduce(%7, %5) {op="sum", group=1}
    %12: f32[4] = aten::exp(%2)
    %13: f32[4] = aten::add.Tensor(%6, %12)
    return %13, %8, %11 })",
                 R"(graph(%0: f32[4], %1: f32[4], %2: f32[4], %9: u8[1], %10: f64 scalar) {
    %3: f32[4] = aten::neg(%0)
    %20: f32[4], %5: u8[1] = ltc_c10d::all_reduce_start(%3, %9) {op="sum", group=1}
    %7: f32[4] = aten::sin(%1)
    %21: f32[4], %11: u8[1] = ltc_c10d::all_reduce_start(%7, %5) {op="sum", group=1}
    %12: f32[4] = aten::exp(%2)
    %4: f32[4] = ltc_c10d::wait(%20) {group=1}
    %6: f32[4] = aten::mul.Tensor(%4, %10)
    %13: f32[4] = aten::add.Tensor(%6, %12)
    %8: f32[4] = ltc_c10d::wait(%21) {group=1}
    return %13, %8, %11 })");
}

// As sharded training records it: each layer gathers its weights, which depend on nothing that the layers before compute.
TEST(Overlap, GathersTheWeightsOfTheNextLayerMeanwhile) {
  expect_overlap(R"(graph(%0: f32[2], %1: f32[2], %2: f32[2], %3: f32[2,2]) {
    %4: f32[2,2], %5: u8[1] = ltc_c10d::all_gather(%0, none) {ranks=2, group=1}
    %6: f32[2,2] = aten::mm(%3, %4)
    %7: f32[2,2] = aten::relu(%6)
    %8: f32[2] = aten::neg(%1)
    %9: f32[2,2], %10: u8[1] = ltc_c10d::all_gather(%8, %5) {ranks=2, group=1}
    %11: f32[2,2] = aten::mm(%7, %9)
    %12: f32[2,2] = aten::relu(%11)
    %13: f32[2,2], %14: u8[1] = ltc_c10d::all_gather(%2, %10) {ranks=2, group=1}
    %15: f32[2,2] = aten::mm(%12, %13)
    return %15, %14 })",
                 R"(graph(%0: f32[2], %1: f32[2], %2: f32[2], %3: f32[2,2]) {
    %20: f32[2,2], %5: u8[1] = ltc_c10d::all_gather_start(%0, none) {ranks=2, group=1}
    %4: f32[2,2] = ltc_c10d::wait(%20) {group=1}
    %6: f32[2,2] = aten::mm(%3, %4)
    %8: f32[2] = aten::neg(%1)
    %21: f32[2,2], %10: u8[1] = ltc_c10d::all_gather_start(%8, %5) {ranks=2, group=1}
    %7: f32[2,2] = aten::relu(%6)
    %9: f32[2,2] = ltc_c10d::wait(%21) {group=1}
    %11: f32[2,2] = aten::mm(%7, %9)
    %22: f32[2,2], %14: u8[1] = ltc_c10d::all_gather_start(%2, %10) {ranks=2, group=1}
    %12: f32[2,2] = aten::relu(%11)
    %13: f32[2,2] = ltc_c10d::wait(%22) {group=1}
    %15: f32[2,2] = aten::mm(%12, %13)
    return %15, %14 })");
}

TEST(Overlap, StaysBehindTheCollectiveBeforeIt) {
  expect_overlap(R"(graph(%0: f32[2], %1: f32[2], %2: f32[2,2]) {
    %3: f32[2,2], %4: u8[1] = ltc_c10d::all_gather(%0, none) {ranks=2, group=1}
    %5: f32[2,2] = aten::mm(%2, %3)
    %6: f32[2,2] = aten::exp(%5)
    %7: f32[2,2], %8: u8[1] = ltc_c10d::all_reduce(%6, %4) {op="sum", group=1}
    %9: f32[2,2] = aten::sin(%6)
    %10: f32[2,2], %11: u8[1] = ltc_c10d::all_gather(%1, %8) {ranks=2, group=1}
    %12: f32[2,2] = aten::mm(%9, %10)
    return %12, %7, %11 })",
                 R"(graph(%0: f32[2], %1: f32[2], %2: f32[2,2]) {
    %20: f32[2,2], %4: u8[1] = ltc_c10d::all_gather_start(%0, none) {ranks=2, group=1}
    %3: f32[2,2] = ltc_c10d::wait(%20) {group=1}
    %5: f32[2,2] = aten::mm(%2, %3)
    %6: f32[2,2] = aten::exp(%5)
    %21: f32[2,2], %8: u8[1] = ltc_c10d::all_reduce_start(%6, %4) {op="sum", group=1}
    %22: f32[2,2], %11: u8[1] = ltc_c10d::all_gather_start(%1, %8) {ranks=2, group=1}
    %9: f32[2,2] = aten::sin(%6)
    %10: f32[2,2] = ltc_c10d::wait(%22) {group=1}
    %12: f32[2,2] = aten::mm(%9, %10)
    %7: f32[2,2] = ltc_c10d::wait(%21) {group=1}
    return %12, %7, %11 })");
}

// Weights of which something else is computed too stay where they are.
TEST(Overlap, MovesOnlyWhatTheCollectiveAloneReads) {
  expect_overlap(R"(graph(%0: f32[2], %1: f32[2], %2: f32[2,2]) {
    %3: f32[2,2], %4: u8[1] = ltc_c10d::all_gather(%0, none) {ranks=2, group=1}
    %5: f32[2,2] = aten::mm(%2, %3)
    %6: f32[2,2] = aten::relu(%5)
    %7: f32[2] = aten::neg(%1)
    %8: f32[2,2], %9: u8[1] = ltc_c10d::all_gather(%7, %4) {ranks=2, group=1}
    %10: f32[2,2] = aten::mm(%6, %8)
    return %10, %7, %9 })",
                 R"(graph(%0: f32[2], %1: f32[2], %2: f32[2,2]) {
    %20: f32[2,2], %4: u8[1] = ltc_c10d::all_gather_start(%0, none) {ranks=2, group=1}
    %3: f32[2,2] = ltc_c10d::wait(%20) {group=1}
    %5: f32[2,2] = aten::mm(%2, %3)
    %6: f32[2,2] = aten::relu(%5)
    %7: f32[2] = aten::neg(%1)
    %21: f32[2,2], %9: u8[1] = ltc_c10d::all_gather_start(%7, %4) {ranks=2, group=1}
    %8: f32[2,2] = ltc_c10d::wait(%21) {group=1}
    %10: f32[2,2] = aten::mm(%6, %8)
    return %10, %7, %9 })");
}

}  // namespace
}  // namespace ltc
