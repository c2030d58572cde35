// The generator's results: graphs of the conformance suite, compiled in the host dialect by the system's compiler, against the
// suite's reference. The results hold for the other dialects as far as their languages agree.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "conformance/ops/cases.h"
#include "core/compile/lowering/abi_graph.h"
#include "core/decompose/decompose.h"
#include "core/ir/text.h"
#include "kernels/plan/im2col_kernel.h"
#include "kernels/plan/planner.h"
#include "kernels/testing/host_run.h"

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

// A type of 8 bits: its exponent's bias, the bits of its fraction, the first pattern that is no finite number, and the last that
// a number becomes.
struct F8 {
  const char* name;
  int bias, fraction_bits, beyond, last;
};
constexpr F8 kF8[] = {{"f8e4m3fn", 7, 3, 0x7f, 0x7e}, {"f8e5m2", 15, 2, 0x7c, 0x7c}};

// The value of the pattern if all patterns were finite.
double f8_value(const F8& type, int pattern) {
  const int ones = 1 << type.fraction_bits, exponent = (pattern & 0x7f) >> type.fraction_bits, fraction = pattern & (ones - 1);
  const double magnitude = exponent ? std::ldexp(ones + fraction, exponent - type.bias - type.fraction_bits)
                                    : std::ldexp(fraction, 1 - type.bias - type.fraction_bits);
  return pattern & 0x80 ? -magnitude : magnitude;
}

// The nearest, of two the even one.
int f8_nearest(const F8& type, double x) {
  const int sign = std::signbit(x) ? 0x80 : 0;
  if (std::isnan(x)) return sign | 0x7f;
  if (std::isinf(x)) return sign | type.last;
  int best = 0;
  for (int pattern = 1; pattern <= type.last; ++pattern) {
    const double there = std::fabs(f8_value(type, pattern) - std::fabs(x)), here = std::fabs(f8_value(type, best) - std::fabs(x));
    if (there < here || (there == here && pattern % 2 == 0)) best = pattern;
  }
  return sign | best;
}

TEST(HostDialect, floats_of_8_bits_are_converted_to_the_nearest) {
  std::vector<float> numbers{0, -0.0f, INFINITY, -INFINITY, NAN, 448, 464, 465, 57344, 61440, 61441, 1e9f, 0x1p-149f};
  std::mt19937 random(1);
  for (const F8& type : kF8) {
    for (int pattern = 0; pattern < type.beyond; ++pattern) {
      const double between = (f8_value(type, pattern) + f8_value(type, pattern + 1)) / 2;
      for (const double x : {between * (1 - 0x1p-20), between, -between, between * (1 + 0x1p-20)})
        numbers.push_back(static_cast<float>(x));
    }
  }
  for (int i = 0; i < 1000; ++i)
    numbers.push_back(static_cast<float>(std::ldexp(static_cast<int>(random()), static_cast<int>(i % 50) - 60)));
  for (const F8& type : kF8) {
    const std::string n = std::to_string(numbers.size()), name(type.name);
    Library library(host_dialect());
    const Prepared prepared(
        parse("graph(%0: f32[" + n + "], %1: " + name + "[256]) {\n%2: " + name + "[" + n +
              "] = aten::_to_copy(%0) {dtype=" + name + "}\n%3: f32[256] = aten::_to_copy(%1) {dtype=f32}\n" + "return %2, %3 }"),
        {}, "u", library, {});
    ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
    std::vector<std::vector<std::byte>> memory;
    for (const Value& value : prepared.plan.graph.values) memory.emplace_back(static_cast<size_t>(value.count) * 4 + 64);
    std::memcpy(memory[0].data(), numbers.data(), numbers.size() * sizeof(float));
    for (int i = 0; i < 256; ++i) memory[1][static_cast<size_t>(i)] = static_cast<std::byte>(i);
    for (size_t i = 0; i < prepared.plan.steps.size(); ++i)
      run_step(prepared.plan.steps[i], prepared.sources[i], library, prepared.functions[i], memory, {});
    for (size_t i = 0; i < numbers.size(); ++i)
      EXPECT_EQ(static_cast<int>(memory[prepared.graph.outputs[0]][i]), f8_nearest(type, numbers[i]))
          << name << " of " << numbers[i];
    const auto* wide = reinterpret_cast<const float*>(memory[prepared.graph.outputs[1]].data());
    for (int i = 0; i < 256; ++i) {
      const bool infinite = type.beyond == 0x7c && (i & 0x7f) == 0x7c, finite = (i & 0x7f) < type.beyond;
      const double expected = infinite ? std::copysign(INFINITY, f8_value(type, i)) : finite ? f8_value(type, i) : NAN;
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(wide[i]) : wide[i] == expected) << name << " " << i << ": " << wide[i];
    }
  }
}

// A convolution's columns in tiles, by the general kernel and by that of im2col_kernel.h.
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
    const auto windows = im2col_kernel(plan.graph, columns, tiles);
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

// The kernels of a device without fp64. Only F32: such a device has no F64 tensors.
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
  check_ops({.block_sorts = true}, "-O0", dialect);
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
    {"scans", {64, 1}, "ucu", R"(graph(%0: f32[3,1000], %1: i64[2,5,130], %2: f32[300,40], %3: f32[5,77,20]) {
      %4: f32[3,1000] = aten::cumsum(%0) {dim=1,dtype=none}
      %5: i64[2,5,130] = aten::cumsum(%1) {dim=2,dtype=none}
      %6: f32[300,40] = aten::cumsum(%2) {dim=0,dtype=none}
      %7: f32[5,77,20] = aten::cumsum(%3) {dim=1,dtype=none}
      %8: f32[5,20] = aten::sum.dim_IntList(%3) {dim=[1],keepdim=false,dtype=none}
      return %4, %5, %6, %7, %8 })"},
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

// Rows of one thread, of some, of a block, of several; ties, for each of which the order of the places shows.
constexpr conformance::ProgramCase kSortCases[] = {
    {"short_rows", {}, "ac", R"(graph(%0: f32[700,5], %1: i64[300,9], %2: f32[5,1]) {
      %3: f32[700,5], %4: i64[700,5] = aten::sort.stable(%0) {stable=true,dim=1,descending=false}
      %5: i64[300,9], %6: i64[300,9] = aten::sort.stable(%1) {stable=true,dim=1,descending=true}
      %7: f32[5,1], %8: i64[5,1] = aten::sort.stable(%2) {stable=true,dim=1,descending=true}
      return %3, %4, %5, %6, %7, %8 })"},
    {"rows_of_some_threads", {}, "ca", R"(graph(%0: f64[11,200], %1: f32[3,300,7], %2: u8[5,577]) {
      %3: f64[11,200], %4: i64[11,200] = aten::sort.stable(%0) {stable=true,dim=1,descending=true}
      %5: f32[3,300,7], %6: i64[3,300,7] = aten::sort.stable(%1) {stable=true,dim=1,descending=false}
      %7: u8[5,577], %8: i64[5,577] = aten::sort.stable(%2) {stable=true,dim=1,descending=false}
      return %3, %4, %5, %6, %7, %8 })"},
    {"rows_of_a_block", {}, "ca", R"(graph(%0: f32[2,2304], %1: f32[2300,3]) {
      %2: f32[2,2304], %3: i64[2,2304] = aten::sort.stable(%0) {stable=true,dim=1,descending=false}
      %4: f32[2300,3], _ = aten::sort.stable(%1) {stable=true,dim=0,descending=true}
      return %2, %3, %4 })"},
    {"rows_of_two_blocks", {}, "ca", R"(graph(%0: f32[3,2305], %1: f32[2,4608]) {
      %2: f32[3,2305], %3: i64[3,2305] = aten::sort.stable(%0) {stable=true,dim=1,descending=true}
      _, %5: i64[2,4608] = aten::sort.stable(%1) {stable=true,dim=1,descending=true}
      return %2, %3, %5 })"},
    {"rows_of_several_blocks", {}, "acc", R"(graph(%0: f32[30000], %1: i64[12000,2], %2: f32[2,5000,2]) {
      %3: f32[30000], %4: i64[30000] = aten::sort.stable(%0) {stable=true,dim=0,descending=false}
      %5: i64[12000,2], %6: i64[12000,2] = aten::sort.stable(%1) {stable=true,dim=0,descending=true}
      %7: f32[2,5000,2], %8: i64[2,5000,2] = aten::sort.stable(%2) {stable=true,dim=1,descending=false}
      return %3, %4, %5, %6, %7, %8 })"},
};

TEST(CudaDialect, sorts_by_blocks_agree_with_the_reference) { check_graphs(kSortCases, {.block_sorts = true}); }

// Lines of an index that go to few places, to many, to one place often and to others once; an index of its own for each line, or
// one for all.
constexpr conformance::ProgramCase kScatterCases[] = {
    {"few_places",
     {64, 1},
     "ucu",
     R"(graph(%0: f32[8], %1: i64[10,100], %2: f32[1000], %3: i64[9], %4: i64[1000], %5: f32[1003]) {
      %6: i64[1000] = aten::reshape(%1) {shape=[1000]}
      %7: f32[8] = aten::scatter_add(%0, %6, %2) {dim=0}
      %8: i64[9] = aten::scatter_add(%3, %6, %4) {dim=0}
      %9: f32[8] = aten::scatter.src(%0, %6, %5) {dim=0}
      return %7, %8, %9 })"},
    {"all_to_one", {64, 1}, "uu", R"(graph(%0: f64[3], %1: f64[2305]) {
      %2: i64[] = aten::full() {size=[],fill_value=0,dtype=i64}
      %3: i64[2305] = aten::expand(%2) {size=[2305]}
      %4: f64[3] = aten::scatter_add(%0, %3, %1) {dim=0}
      %5: f64[3] = aten::scatter.src(%0, %3, %1) {dim=0}
      return %4, %5 })"},
    {"tokens", {64, 1}, "uu", R"(graph(%0: f32[50,48], %1: f32[20,15,48], %2: i32[50,2], %3: i32[300,2]) {
      %4: i64[300] = aten::arange.start_step() {start=3,end=2375703,step=7919,dtype=i64}
      %5: i64[] = aten::full() {size=[],fill_value=5,dtype=i64}
      %6: i64[300] = aten::remainder.Tensor(%4, %5)
      %7: i64[] = aten::full() {size=[],fill_value=2,dtype=i64}
      %8: bool[300] = aten::le.Tensor(%6, %7)
      %9: i64[] = aten::full() {size=[],fill_value=9,dtype=i64}
      %10: i64[] = aten::full() {size=[],fill_value=50,dtype=i64}
      %11: i64[300] = aten::remainder.Tensor(%4, %10)
      %12: i64[300] = aten::where.self(%8, %9, %11)
      %13: i64[20,15] = aten::reshape(%12) {shape=[20,15]}
      %14: i64[300,1] = aten::reshape(%13) {shape=[300,1]}
      %15: i64[300,48] = aten::expand(%14) {size=[300,48]}
      %16: f32[300,48] = aten::reshape(%1) {shape=[300,48]}
      %17: f32[50,48] = aten::scatter_add(%0, %15, %16) {dim=0}
      %18: f32[50,48] = aten::scatter.src(%0, %15, %16) {dim=0}
      %19: i64[300,2] = aten::expand(%14) {size=[300,2]}
      %20: i32[50,2] = aten::scatter_add(%2, %19, %3) {dim=0}
      return %17, %18, %20 })"},
    {"own_index",
     {64, 1},
     "ucu",
     R"(graph(%0: f32[3,9,2], %1: i64[3,200,2], %2: f32[3,210,2], %3: bool[2,8], %4: i64[2,150], %5: bool[2,150]) {
      %6: f32[3,9,2] = aten::scatter_add(%0, %1, %2) {dim=1}
      %7: f32[3,9,2] = aten::scatter.src(%0, %1, %2) {dim=1}
      %8: i64[2,150] = aten::abs(%4)
      %9: i64[] = aten::full() {size=[],fill_value=8,dtype=i64}
      %10: i64[2,150] = aten::remainder.Tensor(%8, %9)
      %11: bool[2,8] = aten::scatter_add(%3, %10, %5) {dim=1}
      return %6, %7, %11 })"},
    {"halves_and_batches", {64, 1}, "uu", R"(graph(%0: f16[2,9,5], %1: f16[2,200,5], %2: f32[2,9,5], %3: f32[2,200,5]) {
      %4: i64[400] = aten::arange.start_step() {start=0,end=400,step=1,dtype=i64}
      %5: i64[] = aten::full() {size=[],fill_value=9,dtype=i64}
      %6: i64[400] = aten::remainder.Tensor(%4, %5)
      %7: i64[2,200,1] = aten::reshape(%6) {shape=[2,200,1]}
      %8: i64[2,200,5] = aten::expand(%7) {size=[2,200,5]}
      %9: f16[2,9,5] = aten::scatter.src(%0, %8, %1) {dim=1}
      %10: f32[2,9,5] = aten::scatter_add(%2, %8, %3) {dim=1}
      return %9, %10 })"},
};

TEST(CudaDialect, scatters_by_sorted_indices_agree_with_the_reference) {
  const Options options{.block_sorts = true, .check_indices = true};
  for (const conformance::ProgramCase& row : kScatterCases) {
    const Plan plan = make_plan(*AbiGraph(parse(row.graph)).get(), options);
    const auto walks = [](const Step& step) { return step.label == "scatter_add" || step.label == "scatter.src"; };
    EXPECT_TRUE(std::ranges::none_of(plan.steps, walks)) << row.name << " walks along lines";
  }
  check_graphs(kScatterCases, options);
}

// An element whose index is out of range is not written; here it goes to a row more, which is then cut off.
TEST(CudaDialect, sorted_indices_outside_of_the_result_write_nothing) {
  constexpr const char* kGraph = R"(graph(%0: f32[5,3], %1: i64[200,3], %2: f32[200,3]) {
    %3: f32[5,3] = aten::scatter_add(%0, %1, %2) {dim=0}
    %4: f32[5,3] = aten::scatter.src(%0, %1, %2) {dim=0}
    return %3, %4 })";
  constexpr const char* kReference = R"(graph(%0: f32[5,3], %1: i64[200,3], %2: f32[200,3]) {
    %3: i64[] = aten::full() {size=[],fill_value=0,dtype=i64}
    %4: i64[] = aten::full() {size=[],fill_value=5,dtype=i64}
    %5: bool[200,3] = aten::lt.Tensor(%1, %3)
    %6: bool[200,3] = aten::lt.Tensor(%1, %4)
    %7: i64[200,3] = aten::where.self(%6, %1, %4)
    %8: i64[200,3] = aten::where.self(%5, %4, %7)
    %9: f32[6,3] = aten::constant_pad_nd(%0) {pad=[0,0,0,1],value=0}
    %10: f32[6,3] = aten::scatter_add(%9, %8, %2) {dim=0}
    %11: f32[6,3] = aten::scatter.src(%9, %8, %2) {dim=0}
    %12: f32[5,3] = aten::slice.Tensor(%10) {dim=0,start=0,end=5,step=1}
    %13: f32[5,3] = aten::slice.Tensor(%11) {dim=0,start=0,end=5,step=1}
    return %12, %13 })";
  for (const char* fills : {"usu", "uau"}) {  // from -4 to 4; anything
    Library library(cuda_dialect());
    const Prepared prepared(parse(kGraph), {64, 1}, fills, library, {.block_sorts = true});
    ASSERT_NO_FATAL_FAILURE(library.build("-O1"));
    check(prepared, parse(kReference), library);
  }
}

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
