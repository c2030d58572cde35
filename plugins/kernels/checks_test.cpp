// Kernels report an index out of range, and nothing else.
#include <gtest/gtest.h>

#include "conformance/ops/cases.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/ir/text.h"
#include "kernels/testing/host_run.h"

namespace ltc::kernels {
namespace {

constexpr conformance::Tolerance kAny{};

struct Case {
  const char* name;
  const char* good;  // how the inputs are filled
  const char* bad;
  const char* graph;
};

// Counts go from 0 to 7, small numbers from -4 to 4, other numbers than 0 from -3 to 3.
constexpr Case kCases[] = {
    {"gather", "uc", "us", R"(graph(%0: f32[8,3], %1: i64[300,3]) {
      %2: f32[300,3] = aten::gather(%0, %1) {dim=0,sparse_grad=false}
      return %2 })"},
    {"too_large", "uc", "ua", R"(graph(%0: f32[8], %1: i64[300]) {
      %2: i64[300] = aten::abs(%1)
      %3: f32[300] = aten::gather(%0, %2) {dim=0,sparse_grad=false}
      return %3 })"},
    {"row_of_an_embedding", "uc", "us", R"(graph(%0: f32[8,40], %1: i64[6]) {
      %2: i64[6,1] = aten::reshape(%1) {shape=[6,1]}
      %3: i64[6,40] = aten::expand(%2) {size=[6,40]}
      %4: f32[6,40] = aten::gather(%0, %3) {dim=0,sparse_grad=false}
      %5: f32[6] = aten::sum.dim_IntList(%4) {dim=[1],keepdim=false,dtype=none}
      return %5 })"},
    {"one_place_for_all", "uc", "us", R"(graph(%0: f32[8,2048], %1: i64[3]) {
      %2: i64[3,1] = aten::reshape(%1) {shape=[3,1]}
      %3: i64[3,2048] = aten::expand(%2) {size=[3,2048]}
      %4: f32[3,2048] = aten::gather(%0, %3) {dim=0,sparse_grad=false}
      %5: f32[3,2048] = aten::add.Tensor(%4, %4) {alpha=1}
      return %5 })"},
    {"scatter", "ucu", "usu", R"(graph(%0: f32[8,2], %1: i64[9,2], %2: f32[9,2]) {
      %3: f32[8,2] = aten::scatter.src(%0, %1, %2) {dim=0}
      return %3 })"},
    {"long_scatter", "ucu", "usu", R"(graph(%0: f32[8], %1: i64[300], %2: f32[300]) {
      %3: f32[8] = aten::scatter.src(%0, %1, %2) {dim=0}
      return %3 })"},
    {"long_scatter_add", "ucu", "usu", R"(graph(%0: f32[8], %1: i64[301], %2: f32[301]) {
      %3: f32[8] = aten::scatter_add(%0, %1, %2) {dim=0}
      return %3 })"},
};

class Checks : public testing::TestWithParam<const Dialect*> {};
INSTANTIATE_TEST_SUITE_P(Dialects, Checks, testing::Values(&host_dialect(), &cuda_dialect()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(Checks, find_bad_indices) {
  const Options options{.block_sorts = GetParam() == &cuda_dialect(), .check_indices = true};
  Library library(*GetParam());
  std::vector<Prepared> good, bad;
  for (const Case& row : kCases) {
    good.emplace_back(parse(row.graph), kAny, row.good, library, options);
    bad.emplace_back(parse(row.graph), kAny, row.bad, library, options);
  }
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_EQ(failed_check(good[i], library), std::nullopt) << kCases[i].name;
    EXPECT_EQ(failed_check(bad[i], library), 0u) << kCases[i].name;
  }
}

// In a pad nothing is gathered, whatever is computed from an index that is not there: here -1.
TEST_P(Checks, leave_out_what_is_not_read) {
  constexpr const char* kGraph = R"(graph(%0: f32[8], %1: i64[300]) {
    %2: i64[300] = aten::abs(%1)
    %3: i64[] = aten::full() {size=[],fill_value=-1,dtype=i64}
    %4: i64[300] = aten::add.Tensor(%2, %3) {alpha=1}
    %5: f32[300] = aten::gather(%0, %4) {dim=0,sparse_grad=false}
    %6: f32[310] = aten::constant_pad_nd(%5) {pad=[4,6],value=0.5}
    return %6 })";
  Library library(*GetParam());
  const Options options{.check_indices = true};
  const Prepared good(parse(kGraph), kAny, "un", library, options), bad(parse(kGraph), kAny, "us", library, options);
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  EXPECT_EQ(failed_check(good, library), std::nullopt);
  EXPECT_EQ(failed_check(bad, library), 0u);
}

TEST_P(Checks, have_numbers) {
  constexpr const char* kGraph = R"(graph(%0: f32[8], %1: i64[300], %2: i64[300]) {
    %3: f32[300] = aten::gather(%0, %1) {dim=0,sparse_grad=false}
    %4: f32[300] = aten::gather(%0, %2) {dim=0,sparse_grad=false}
    %5: f32[300] = aten::add.Tensor(%3, %4) {alpha=1}
    return %5 })";
  Library library(*GetParam());
  const Prepared first(parse(kGraph), kAny, "usc", library, {.check_indices = true}),
      second(parse(kGraph), kAny, "ucs", library, {.check_indices = true});
  ASSERT_EQ(first.plan.steps.size(), 1u);
  const auto& checks = std::get<Kernel>(first.plan.steps[0].work).checks;
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].size, 8);
  const bool in_order = checks[0].source == 0;
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  EXPECT_EQ(failed_check(first, library), in_order ? 0u : 1u);
  EXPECT_EQ(failed_check(second, library), in_order ? 1u : 0u);
}

}  // namespace
}  // namespace ltc::kernels
