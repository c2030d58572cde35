// The execute tier: executables that serve many sizes, of plugins that list the extension (ltc/symbolic.h).
#include <algorithm>

#include "conformance/kit/heap.h"
#include "conformance/ops/reference.h"
#include "conformance/tiers/execute_fixture.h"
#include "core/compile/lowering/symbolic_graph.h"

namespace ltc::conformance {
namespace {

// A graph for each size; all are of one structure.
struct Family {
  const char* name;
  Graph (*graph)(int64_t n);
};

// Params, intermediate values and outputs follow the size, and attributes that repeat it; one output does not.
Graph linear(int64_t n) {
  return parse(cat("graph(%0: f32[1,", n, ",5], %1: f32[1,5,3], %2: f32[3], %3: f64 scalar) { %4: f32[1,", n,
                   ",3] = aten::bmm(%0, %1) %5: f32[", n, ",3] = aten::reshape(%4) {shape=[", n, ",3]} %6: f32[", n,
                   ",3] = aten::add.Tensor(%5, %2) {alpha=1} %7: f32[3,", n, "] = aten::permute(%6) {dims=[1,0]} %8: f32[", 3 * n,
                   "] = aten::reshape(%7) {shape=[", 3 * n,
                   "]} %9: f32[3] = aten::sum.dim_IntList(%6) {dim=[0],keepdim=false,dtype=none} %10: f32[] = aten::_to_copy(%3) "
                   "{dtype=f32} %11: f32[",
                   3 * n, "] = aten::mul.Tensor(%8, %10) return %9, %11 }"));
}

// Attributes that no type repeats: whole numbers of both kinds, with a factor and with an offset.
Graph numbers(int64_t n) {
  return parse(cat("graph(%0: f32[", n, "]) { %1: f32[] = aten::full() {size=[],fill_value=", 3 * n, ".0,dtype=f32} %2: f32[", n,
                   "] = aten::mul.Tensor(%0, %1) %3: f32[", 2 * n, "] = aten::cat(%0, %2) {tensors.count=2,dim=0} %4: f32[", n,
                   "] = aten::slice.Tensor(%3) {dim=0,start=", n, ",end=", 2 * n, ",step=1} %5: f32[", 2 * n + 1,
                   "] = aten::constant_pad_nd(%4) {pad=[", n, ",1],value=2.0} %6: f32[", n,
                   "] = aten::arange.start_step() {start=", n, ",end=", 2 * n, ",step=1,dtype=f32} %7: f32[", n,
                   "] = aten::add.Tensor(%4, %6) {alpha=1} return %5, %7 }"));
}

Graph broadcast(int64_t n) {
  return parse(cat("graph(%0: f32[", n, ",1], %1: f32[1,4], %2: f32[1,1]) { %3: f32[", n,
                   ",4] = aten::mul.Tensor(%0, %1) %4: f32[", n, ",4] = aten::expand(%2) {size=[", n,
                   ",4],implicit=false} %5: f32[", n, ",4] = aten::add.Tensor(%3, %4) {alpha=1} return %5 }"));
}

constexpr Family kFamilies[] = {{"linear", linear}, {"numbers", numbers}, {"broadcast", broadcast}};

// Small whole numbers: whatever the order of adding, results are exact.
std::vector<Array> inputs_of(const Graph& graph) {
  std::vector<Array> inputs;
  for (const Param& param : graph.params) {
    if (param.scalar) continue;
    Array& input = inputs.emplace_back(DType::kF32, graph.type(param.value).sizes);
    for (int64_t i = 0; i < input.count(); ++i) input.set_real(i, static_cast<double>((i * 7 + 3) % 11 - 5));
  }
  return inputs;
}

class ExecuteSymbolic : public Execute, public ::testing::WithParamInterface<Family> {
 protected:
  void SetUp() override {
    Execute::SetUp();
    if (IsSkipped()) return;
    const ltc_extension* one = api().ext;
    while (one && one->kind != LTC_EXTENSION_SYMBOLIC) one = one->next;
    if (!one) LTC_NOT_APPLICABLE("the plugin does not list the extension ltc/symbolic.h");
  }

  void TearDown() override {
    executable_.reset();
    Execute::TearDown();
  }

  // Builds the family from the sizes 6 and 10. Returns false where the test ends: it is skipped if the plugin refuses the family.
  bool build(const Family& family) {
    build_or_skip(family);
    return !IsSkipped() && !HasFatalFailure();
  }
  void build_or_skip(const Family& family) {
    general_ = SymbolicGraph::unify(SymbolicGraph(GraphSkeleton(family.graph(6))), GraphSkeleton(family.graph(10)));
    ASSERT_TRUE(general_);
    const Graph example = family.graph(10);
    const ltc_symbolic_sizes sizes = general_->table();
    Program program;
    const Failure refused = device().lower(*AbiGraph(example).get(), program, &sizes.head);
    if (refused.code == LTC_UNSUPPORTED) LTC_UNSUPPORTED_BY_PLUGIN("refuses the graph with symbols: ", refused.message);
    ASSERT_OK(refused);
    executable_ = device().compile(program);
  }

  Device::Run submit(const Graph& graph, const std::vector<Buffer>& buffers, const ltc_symbol_values* symbols) {
    std::vector<ltc_buffer*> inputs;
    for (const Buffer& buffer : buffers) inputs.push_back(buffer.get());
    std::vector<ltc_scalar> scalars(graph.params.size() - inputs.size(), number(2));
    return device().submit({.executable = executable_,
                            .inputs = inputs,
                            .output_count = graph.outputs.size(),
                            .scalars = scalars,
                            .ext = symbols ? &symbols->head : nullptr});
  }
  std::vector<Buffer> upload(const Graph& graph) {
    std::vector<Buffer> buffers;
    for (const Array& input : inputs_of(graph)) buffers.push_back(device().upload(input));
    return buffers;
  }
  static ltc_symbol_values values_of(const std::vector<int64_t>& symbols) {
    return {{LTC_SIZE_TO(ltc_symbol_values, values), LTC_EXTENSION_SYMBOLIC, 1, nullptr}, symbols.size(), symbols.data()};
  }

  Device::Run submit(const Graph& graph, const std::vector<Buffer>& buffers) {
    const auto symbols = general_->match(GraphSkeleton(graph)).value();
    const ltc_symbol_values values = values_of(symbols);
    return submit(graph, buffers, &values);
  }
  void expect_right(const Graph& graph, const Device::Run& run) {
    ASSERT_OK(run.submitted);
    ASSERT_OK(device().finish(run.done));
    const bool has_number = std::ranges::any_of(graph.params, &Param::scalar);
    const auto expected = evaluate(graph, inputs_of(graph), std::vector<Scalar>(has_number ? 1 : 0, {.f = 2}));
    for (size_t i = 0; i < expected.size(); ++i) {
      const Array got = device().download(run.outputs[i], DType::kF32, expected[i].sizes);
      EXPECT_EQ(got.values<float>(), expected[i].values<float>()) << "output " << i << " of\n" << print(graph);
    }
  }

  std::optional<SymbolicGraph> general_;
  Executable executable_;
};

TEST_P(ExecuteSymbolic, an_executable_for_many_sizes_is_right_for_each) {
  if (!build(GetParam())) return;
  for (const int64_t n : {10, 6, 2, 1, 0, 3, 100, 10}) {
    const Graph graph = GetParam().graph(n);
    expect_right(graph, submit(graph, upload(graph)));
  }
}

// Nothing is read back before all are submitted. Long runs come first, so that the others are pending where runs can be.
TEST_P(ExecuteSymbolic, pending_runs_keep_their_sizes) {
  if (!build(GetParam())) return;
  const Executable long_run = device().build("graph(%0: f32[1048576]) { %1: f32[1048576] = aten::neg(%0) return %1 }");
  const Buffer long_input = device().buffer(DType::kF32, {1 << 20});
  std::vector<Graph> graphs;
  std::vector<std::vector<Buffer>> inputs;
  for (int64_t n = 1; n <= 20; ++n) graphs.push_back(GetParam().graph(n)), inputs.push_back(upload(graphs.back()));
  for (int i = 0; i < 5; ++i) (void)device().submit({long_run, {long_input.get()}});
  std::vector<Device::Run> runs;
  for (size_t i = 0; i < graphs.size(); ++i) runs.push_back(submit(graphs[i], inputs[i]));
  for (size_t i = 0; i < graphs.size(); ++i) expect_right(graphs[i], runs[i]);
}

TEST_P(ExecuteSymbolic, the_same_graph_without_symbols_is_meant_as_it_is) {
  if (!build(GetParam())) return;
  executable_ = device().build(GetParam().graph(10));
  const Graph graph = GetParam().graph(10);
  const Device::Run run = submit(graph, upload(graph), nullptr);
  EXPECT_OK(run.submitted);
}

TEST_P(ExecuteSymbolic, a_run_without_its_sizes_is_refused) {
  if (!build(GetParam())) return;
  const Graph graph = GetParam().graph(10);
  const auto buffers = upload(graph);
  EXPECT_EQ(code_text(submit(graph, buffers, nullptr).submitted.code), "INVALID_ARGUMENT");
  const ltc_symbol_values none = values_of({});
  EXPECT_EQ(code_text(submit(graph, buffers, &none).submitted.code), "INVALID_ARGUMENT");
}

TEST_P(ExecuteSymbolic, inputs_of_other_sizes_than_the_symbols_are_refused) {
  if (!build(GetParam())) return;
  const auto symbols = *general_->match(GraphSkeleton(GetParam().graph(10)));
  const ltc_symbol_values values = values_of(symbols);
  const Graph other = GetParam().graph(6);
  EXPECT_EQ(code_text(submit(other, upload(other), &values).submitted.code), "INVALID_ARGUMENT");
}

TEST_P(ExecuteSymbolic, runs_of_many_sizes_leave_nothing_behind) {
  if (!build(GetParam())) return;
  const Graph graph = GetParam().graph(4);
  const auto symbols = *general_->match(GraphSkeleton(graph));
  const ltc_symbol_values values = values_of(symbols);
  const auto buffers = upload(graph);
  const auto growth = growth_per_time(500, [&] { EXPECT_OK(device().finish(submit(graph, buffers, &values).done)); });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each run";
}

INSTANTIATE_TEST_SUITE_P(, ExecuteSymbolic, ::testing::ValuesIn(kFamilies),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ltc::conformance
