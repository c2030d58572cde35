// The execute tier: how long a graph is read, attributes that are left out, and memory of programs.
#include <algorithm>
#include <span>

#include "conformance/kit/graph_copy.h"
#include "conformance/kit/heap.h"
#include "conformance/ops/reference.h"
#include "conformance/tiers/execute_fixture.h"

namespace ltc::conformance {
namespace {

class ExecuteGraphs : public Execute {
 protected:
  bool claims_all(const Graph& graph) {
    std::vector<uint32_t> clusters;
    EXPECT_OK(device().claims(*AbiGraph(graph).get(), clusters));
    return !std::ranges::count(clusters, 0u);
  }
  // Small whole numbers, in no order.
  static std::vector<Array> inputs_of(const Graph& graph) {
    std::vector<Array> inputs;
    for (const Param& param : graph.params) {
      const Type& type = type_of(graph.types[param.value]);
      Array& input = inputs.emplace_back(type.dtype, type.sizes);
      for (int64_t i = 0; i < input.count(); ++i) input.set_real(i, static_cast<double>((i * 7 + 3) % 11 - 5));
    }
    return inputs;
  }
  void expect_result(const Program& program, const Graph& graph, const Graph& meaning) {
    const Executable executable = device().compile(program);
    std::vector<Buffer> buffers;
    std::vector<ltc_buffer*> handles;
    for (const Array& input : inputs_of(graph))
      buffers.push_back(device().upload(input)), handles.push_back(buffers.back().get());
    const auto expected = evaluate(meaning, inputs_of(graph));
    const auto got = device().run({executable, handles, expected.size()});
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(device().download(got[i], expected[i].dtype, expected[i].sizes).bytes == expected[i].bytes)
          << "another result than the reference's of output " << i << " of\n"
          << print(graph);
  }
};

// An op of each kind of attribute.
constexpr const char* kWithAttributes[] = {
    kAdd4,
    "graph(%0: f32[2,3]) { %1: f32[3,2] = aten::reshape(%0) {shape=[3,2]} return %1 }",
    "graph(%0: f32[2,3]) { %1: f32[3,2] = aten::permute(%0) {dims=[1,0]} return %1 }",
    "graph(%0: f32[2,3]) { %1: f32[3] = aten::sum.dim_IntList(%0) {dim=[0],keepdim=false,dtype=none} return %1 }",
    "graph(%0: f32[2,3]) { %1: f32[2,1] = aten::amax(%0) {dim=[1],keepdim=true} return %1 }",
    "graph(%0: f32[5]) { %1: f32[2] = aten::slice.Tensor(%0) {dim=0,start=1,end=4,step=2} return %1 }",
    "graph(%0: f32[2]) { %1: f32[5] = aten::constant_pad_nd(%0) {pad=[1,2],value=7.5} return %1 }",
    "graph(%0: f32[2,1], %1: f32[2,2]) { %2: f32[2,3] = aten::cat(%0, %1) {tensors.count=2,dim=1} return %2 }",
    "graph() { %0: f32[4] = aten::full() {size=[4],fill_value=2.5,dtype=f32} return %0 }",
    "graph() { %0: f32[4] = aten::arange.start_step() {start=3,end=11,step=2,dtype=f32} return %0 }",
    "graph(%0: f32[3]) { %1: f32[3,1,3] = aten::expand(%0) {size=[3,1,3],implicit=false} return %1 }",
};

TEST_F(ExecuteGraphs, a_graph_is_read_until_lower_returns) {
  int claimed = 0;
  for (const char* text : kWithAttributes) {
    const Graph graph = parse(text);
    if (!claims_all(graph)) continue;
    ++claimed;
    GraphCopy copy(*AbiGraph(graph).get());
    Program program;
    ASSERT_OK(device().lower(*copy.get(), program));
    copy.take_away();  // one that is still read ends the process
    expect_result(program, graph, graph);
  }
  if (claimed == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: an op with attributes of each kind");
}

// The attributes of an op in the form that the reference knows, and in another one of the same meaning.
struct Forms {
  const char *graph, *plain, *other;
};
constexpr Forms kLeftOut[] = {
    {"graph(%0: f32[2,3]) { %1: f32[2,3] = aten::slice.Tensor(%0) {ATTRS} return %1 }", "dim=0,start=0,end=2,step=1", ""},
    {"graph(%0: f32[2,3]) { %1: f32[1,3] = aten::slice.Tensor(%0) {ATTRS} return %1 }", "dim=0,start=1,end=2,step=1",
     "start=1,end=2"},
    {"graph(%0: f32[2,3]) { %1: f32[2,2] = aten::slice.Tensor(%0) {ATTRS} return %1 }", "dim=1,start=1,end=3,step=1",
     "dim=1,start=1"},
    {"graph(%0: f32[1,2], %1: f32[2,2]) { %2: f32[3,2] = aten::cat(%0, %1) {ATTRS} return %2 }", "tensors.count=2,dim=0",
     "tensors.count=2"},
    {"graph(%0: f32[2,3]) { %1: f32[3] = aten::sum.dim_IntList(%0) {ATTRS} return %1 }", "dim=[0],keepdim=false,dtype=none",
     "dim=[0]"},
    {"graph(%0: f32[2,3]) { %1: f32[] = aten::amax(%0) {ATTRS} return %1 }", "dim=[0,1],keepdim=false", ""},
    {"graph(%0: f32[2,3]) { %1: f32[2] = aten::amax(%0) {ATTRS} return %1 }", "dim=[1],keepdim=false", "dim=[1]"},
    {"graph(%0: f32[2,3]) { %1: i64[2] = aten::argmax(%0) {ATTRS} return %1 }", "dim=1,keepdim=false", "dim=1"},
    {"graph(%0: f32[2,3]) { %1: f32[2,3], %2: i64[2,3] = aten::sort.stable(%0) {ATTRS} return %1, %2 }",
     "stable=true,dim=1,descending=false", "stable=true"},
    {"graph(%0: f32[3]) { %1: f32[2,3] = aten::expand(%0) {ATTRS} return %1 }", "size=[2,3],implicit=false", "size=[2,3]"},
};

constexpr Forms kNegative[] = {
    {"graph(%0: f32[2,3]) { %1: f32[3,2] = aten::permute(%0) {ATTRS} return %1 }", "dims=[1,0]", "dims=[-1,0]"},
    {"graph(%0: f32[2,3]) { %1: f32[2] = aten::sum.dim_IntList(%0) {ATTRS} return %1 }", "dim=[1],keepdim=false,dtype=none",
     "dim=[-1],keepdim=false,dtype=none"},
    {"graph(%0: f32[2,3]) { %1: f32[1,3] = aten::amax(%0) {ATTRS} return %1 }", "dim=[0],keepdim=true", "dim=[-2],keepdim=true"},
    {"graph(%0: f32[2,3]) { %1: i64[2] = aten::argmax(%0) {ATTRS} return %1 }", "dim=1,keepdim=false", "dim=-1,keepdim=false"},
    {"graph(%0: f32[2,3]) { %1: f32[2,3] = aten::cumsum(%0) {ATTRS} return %1 }", "dim=0,dtype=none", "dim=-2,dtype=none"},
    {"graph(%0: f32[2,3]) { %1: f32[2,2] = aten::slice.Tensor(%0) {ATTRS} return %1 }", "dim=1,start=1,end=3,step=1",
     "dim=-1,start=1,end=3,step=1"},
    {"graph(%0: f32[2,3], %1: f32[2,1]) { %2: f32[2,4] = aten::cat(%0, %1) {ATTRS} return %2 }", "tensors.count=2,dim=1",
     "tensors.count=2,dim=-1"},
    {"graph(%0: f32[2,3]) { %1: f32[2,3], %2: i64[2,3] = aten::sort.stable(%0) {ATTRS} return %1, %2 }",
     "stable=true,dim=0,descending=true", "stable=true,dim=-2,descending=true"},
};

class ExecuteForms : public ExecuteGraphs {
 protected:
  void expect_same(std::span<const Forms> rows) {
    int claimed = 0;
    for (const Forms& row : rows) {
      const auto with = [&](const char* attrs) {
        std::string text = row.graph;
        return parse(text.replace(text.find("{ATTRS}"), 7, *attrs ? cat("{", attrs, "}") : ""));
      };
      const Graph plain = with(row.plain), other = with(row.other);
      if (!claims_all(plain) || !claims_all(other)) continue;
      ++claimed;
      Program program;
      ASSERT_OK(device().lower(*AbiGraph(other).get(), program));
      expect_result(program, other, plain);
    }
    if (claimed == 0) LTC_UNSUPPORTED_BY_PLUGIN("not claimed: an op with attributes of such a form");
  }
};

TEST_F(ExecuteForms, an_argument_left_out_has_its_default) { expect_same(kLeftOut); }
TEST_F(ExecuteForms, a_negative_dim_counts_from_the_end) { expect_same(kNegative); }

// The graph has many values, so that a leak per value shows.
TEST_F(ExecuteGraphs, programs_leave_nothing_behind) {
  std::string text = "graph(%0: f32[4]) {\n";
  for (int i = 1; i <= 100; ++i) text += cat("%", i, ": f32[4] = aten::neg(%", i - 1, ")\n");
  const Graph graph = parse(text + "return %100 }");
  const AbiGraph abi(graph);
  const auto growth = growth_per_time(100, [&] {
    Program program;
    EXPECT_OK(device().lower(*abi.get(), program));
  });
  if (!growth) LTC_NOT_APPLICABLE("the allocator does not count");
  EXPECT_LT(*growth, kLeakBytes) << "bytes of host memory lost with each program of 100 nodes that was lowered and destroyed";
}

}  // namespace
}  // namespace ltc::conformance
