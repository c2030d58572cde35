// The generator's results: graphs of the conformance suite, compiled in the host dialect by the system's compiler, against the
// suite's reference. What holds here holds for the other dialects as far as their languages agree.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "conformance/ops/cases.h"
#include "core/compile/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"
#include "kernels/host_run.h"
#include "kernels/plan.h"
#include "kernels/windows.h"

namespace ltc::kernels {
namespace {

std::vector<std::pair<const conformance::OpCase*, std::string>> convolutions(DType dtype) {
  std::vector<std::pair<const conformance::OpCase*, std::string>> found;
  for (const conformance::OpCase& row : conformance::op_cases()) {
    if (row.op != "aten::convolution") continue;
    for (const std::string& text : conformance::graphs_of(row, dtype)) found.emplace_back(&row, text);
  }
  return found;
}

void check_ops(const Options& options, const std::string& flags, const Dialect& dialect = host_dialect()) {
  Library library(dialect);
  std::vector<Prepared> all;
  for (const conformance::OpCase& row : conformance::op_cases()) {
    for (const DType dtype : conformance::dtypes_of(row.dtypes)) {
      for (const std::string& text : conformance::graphs_of(row, dtype)) {
        all.emplace_back(parse(text), row.tolerance, row.fills, library, options);
      }
    }
  }
  ASSERT_NO_FATAL_FAILURE(library.build(flags));
  for (const Prepared& prepared : all) check(prepared, prepared.graph, library);
}

TEST(HostDialect, ops_agree_with_the_reference) { check_ops({}, "-O1"); }

TEST(HostDialect, convolutions_by_image_agree_with_the_reference) {
  Library library(host_dialect());
  std::vector<Prepared> all;
  Options options;
  options.points_by_image = 1;
  for (const auto& [row, text] : convolutions(DType::kF64))
    all.emplace_back(parse(text), row->tolerance, row->fills, library, options);
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  for (const Prepared& prepared : all) check(prepared, prepared.graph, library);
}

// A convolution's columns in tiles, by the general kernel and by that of windows.h.
struct PackedTwice {
  const Step& general;
  Step windows;
  ValueId tiles;
  int64_t columns;  // behind them lies nothing of meaning
  std::vector<Source> sources;
  std::vector<size_t> functions;
};

std::optional<PackedTwice> packed_twice(const Plan& plan, Library& library) {
  for (const Step& step : plan.steps) {
    const ValueId tiles = step.buffers.back().value;
    const NodeId producer = plan.graph.values[tiles].producer;
    if (producer == kNone || plan.graph.nodes[producer].kind != Kind::kPack) continue;
    const ValueId columns = plan.graph.nodes[producer].in[0];
    const auto windows = packed_windows(plan.graph, columns, tiles);
    if (!windows) continue;
    PackedTwice both{step, {*windows, {{windows->image, LTC_F32, false}, {tiles, LTC_F32, true}}, {}, 0, {}}, tiles, 0, {}, {}};
    both.columns = plan.graph.values[columns].sizes[2];
    for (const Step* one : {&both.general, &std::as_const(both.windows)}) {
      both.sources.push_back(render(*one, host_dialect()));
      both.functions.push_back(library.add(both.sources.back().text));
    }
    return both;
  }
  return std::nullopt;
}

TEST(HostDialect, windows_are_packed_as_by_the_general_kernel) {
  Options options;
  options.library_product = [](ltc_dtype, int64_t, int64_t, int64_t, int64_t) { return true; };
  options.tile_columns = 16;
  Library library(host_dialect());
  std::vector<Plan> plans;
  for (const int64_t points_by_image : {INT64_MAX, int64_t{1}}) {
    options.points_by_image = points_by_image;
    for (const auto& [row, text] : convolutions(DType::kF32)) {
      const ltc::Graph graph = parse(text);
      plans.push_back(make_plan(*AbiGraph(graph).get(), options));
    }
  }
  ASSERT_GE(plans.size(), 10u);
  std::vector<PackedTwice> all;
  for (const Plan& plan : plans) {
    auto both = packed_twice(plan, library);
    ASSERT_TRUE(both) << plan.fusion.text(plan.graph);
    all.push_back(*std::move(both));
  }
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  for (size_t i = 0; i < all.size(); ++i) {
    const PackedTwice& both = all[i];
    const kernels::Value& tiles = plans[i].graph.values[both.tiles];
    std::vector<std::vector<float>> results;
    for (size_t way = 0; way < 2; ++way) {
      std::vector<std::vector<std::byte>> memory;
      for (const kernels::Value& value : plans[i].graph.values) memory.emplace_back(static_cast<size_t>(value.count) * 8 + 64);
      for (const Param& param : plans[i].graph.params) {
        auto* elements = reinterpret_cast<float*>(memory[param.value].data());
        for (int64_t at = 0; at < plans[i].graph.values[param.value].count; ++at) elements[at] = static_cast<float>(at + 1);
      }
      run_step(way ? both.windows : both.general, both.sources[way], library, both.functions[way], memory, {});
      const auto* begin = reinterpret_cast<const float*>(memory[both.tiles].data());
      results.emplace_back(begin, begin + tiles.count);
    }
    for (int64_t at = 0; at < tiles.count; ++at) {
      const int64_t column = at / (tiles.sizes[2] * tiles.sizes[3]) % tiles.sizes[1] * tiles.sizes[3] + at % tiles.sizes[3];
      if (column < both.columns) {
        ASSERT_EQ(results[0][static_cast<size_t>(at)], results[1][static_cast<size_t>(at)]) << "element " << at << ", by\n"
                                                                                            << both.sources[1].text;
      }
    }
  }
}

void check_programs(const Options& options, const Dialect& dialect = host_dialect()) {
  Library library(dialect);
  std::vector<Prepared> all;
  std::vector<ltc::Graph> references;
  for (const auto& cases : {conformance::program_cases(), conformance::derived_cases()}) {
    for (const conformance::ProgramCase& row : cases) {
      const ltc::Graph graph = decompose::minimal_form(parse(row.graph));
      references.push_back(graph);
      all.emplace_back(graph, row.tolerance, row.fills, library, options);
    }
  }
  ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
  for (size_t i = 0; i < all.size(); ++i) check(all[i], references[i], library);
}

// What a device without fp64 runs. Only F32: such a device has no F64 tensors.
TEST(HostDialect, programs_agree_with_the_reference) {
  for (const bool fp64 : {true, false}) check_programs(Options{{fp64}, {}});
}

// The same kernels as blocks of threads and packs of elements, which a dialect takes that needs few threads to be busy.
Dialect busy_with(int64_t threads) {
  Dialect dialect = cuda_dialect();
  dialect.device_threads = threads;
  return dialect;
}

TEST(CudaDialect, ops_agree_with_the_reference) {
  const Dialect dialect = busy_with(8);
  check_ops({}, "-O0", dialect);
}

TEST(CudaDialect, programs_agree_with_the_reference) {
  const Dialect dialect = busy_with(4096);
  check_programs({}, dialect);
}

// As the dialect is: blocks and packs as large as on a device.
constexpr conformance::ProgramCase kLargeCases[] = {
    {"softmax", {64}, "u", R"(graph(%0: f32[3,5000]) {
      %1: f32[3,5000] = aten::_softmax(%0) {dim=1,half_to_float=false}
      return %1 })"},
    {"rows_of_all_lengths", {64}, "a", R"(graph(%0: f32[37,33], %1: f32[700,3], %2: f32[5,1000]) {
      %3: f32[37] = aten::amax(%0) {dim=[1],keepdim=false}
      %4: i64[37] = aten::argmax(%0) {dim=1,keepdim=false}
      %5: f32[700] = aten::sum.dim_IntList(%1) {dim=[1],keepdim=false,dtype=none}
      %6: i64[5] = aten::argmax(%2) {dim=1,keepdim=false}
      %7: f32[5] = aten::amax(%2) {dim=[1],keepdim=false}
      return %3, %4, %5, %6, %7 })"},
    {"first_of_equals", {}, "c", R"(graph(%0: f32[9,777], %1: i64[300,41]) {
      %2: i64[9] = aten::argmax(%0) {dim=1,keepdim=false}
      %3: i64[41] = aten::argmax(%1) {dim=0,keepdim=false}
      return %2, %3 })"},
    {"columns", {64}, "u", R"(graph(%0: f32[600,70], %1: f32[600,70]) {
      %2: f32[600,70] = aten::mul.Tensor(%0, %1)
      %3: f32[70] = aten::sum.dim_IntList(%2) {dim=[0],keepdim=false,dtype=none}
      %4: f32[70] = aten::amax(%0) {dim=[0],keepdim=false}
      return %3, %4 })"},
    {"layer_norm", {64, 1}, "uup", R"(graph(%0: f32[40,768], %1: f32[768], %2: f32[768]) {
      %3: f32[40,768], %4: f32[40,1], %5: f32[40,1] = aten::native_layer_norm(%0, %1, %2) {normalized_shape=[768],eps=1e-05}
      return %3, %4, %5 })"},
    {"scans", {64, 1}, "ucu", R"(graph(%0: f32[3,1000], %1: i64[2,5,130], %2: f32[300,40]) {
      %3: f32[3,1000] = aten::cumsum(%0) {dim=1,dtype=none}
      %4: i64[2,5,130] = aten::cumsum(%1) {dim=2,dtype=none}
      %5: f32[300,40] = aten::cumsum(%2) {dim=0,dtype=none}
      return %3, %4, %5 })"},
    {"packs", {64}, "u", R"(graph(%0: f32[2,131077], %1: f32[131077], %2: f32[2,1], %3: bool[2,131077]) {
      %4: f32[2,131077] = aten::add.Tensor(%0, %1) {alpha=1}
      %5: f32[2,131077] = aten::mul.Tensor(%4, %2)
      %6: f32[2,131077] = aten::where.self(%3, %5, %0)
      return %6 })"},
    {"packs_of_rows", {64}, "u", R"(graph(%0: f32[1024,260], %1: f32[260], %2: f32[260,1024]) {
      %3: f32[1024,260] = aten::add.Tensor(%0, %1) {alpha=1}
      %4: f32[1024,260] = aten::permute(%2) {dims=[1,0]}
      %5: f32[1024,260] = aten::mul.Tensor(%3, %4)
      return %5 })"},
    {"packs_of_halves", {64}, "u", R"(graph(%0: f16[262144], %1: bf16[262144]) {
      %2: f32[262144] = aten::_to_copy(%0) {dtype=f32}
      %3: bf16[262144] = aten::_to_copy(%2) {dtype=bf16}
      return %3 })"},
};

TEST(CudaDialect, large_kernels_agree_with_the_reference) { check_graphs(kLargeCases, {}); }

// Few long rows, in pieces.
constexpr conformance::ProgramCase kLongCases[] = {
    {"all", {8}, "u", R"(graph(%0: f32[100000]) {
      %1: f32[] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=none}
      %2: f32[] = aten::amax(%0) {dim=[0],keepdim=false}
      return %1, %2 })"},
    {"columns", {8}, "u", R"(graph(%0: f32[6000,7], %1: i32[6000,7]) {
      %2: f32[7] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=none}
      %3: i32[1,7] = aten::sum.dim_IntList(%1) {dim=[0],keepdim=true,dtype=i32}
      return %2, %3 })"},
    {"channels", {8}, "u", R"(graph(%0: f32[8,3,40,50]) {
      %1: f32[8,3,40,50] = aten::mul.Tensor(%0, %0)
      %2: f32[1,3,1,1] = aten::sum.dim_IntList(%1) {dim=[0,2,3],keepdim=true,dtype=none}
      %3: f32[8,3,40,50] = aten::add.Tensor(%0, %2) {alpha=1}
      return %3 })"},
    {"in_the_middle", {256, 1}, "u", R"(graph(%0: f64[2,9000,1,3]) {
      %1: f64[2,1,3] = aten::sum.dim_IntList(%0) {dim=[1],keepdim=false,dtype=none}
      %2: f64[2,9000,1,3] = aten::abs(%0)
      %3: f64[2,1,3] = aten::amax(%2) {dim=[1],keepdim=false}
      return %1, %3 })"},
};

TEST(CudaDialect, long_rows_in_pieces_agree_with_the_reference) {
  const Options options{.split_threads = 1 << 18};
  for (const conformance::ProgramCase& row : kLongCases) {
    const Plan plan = make_plan(*AbiGraph(parse(row.graph)).get(), options);
    EXPECT_GT(plan.steps.size(), make_plan(*AbiGraph(parse(row.graph)).get(), {}).steps.size()) << row.name << " is not split";
  }
  check_graphs(kLongCases, options);
}

}  // namespace
}  // namespace ltc::kernels
