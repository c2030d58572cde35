#include "core/ir/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TypeId f32(std::vector<int64_t> sizes) { return intern_contiguous(DType::kF32, sizes); }
const TypeId kF2 = f32({2});

ValueId param(Trace& trace, TypeId type = kF2) { return trace.add_param(kOpParam, type); }
ValueId scalar(Trace& trace) { return trace.add_param(kOpScalar, scalar_type(DType::kF64)); }
ValueId node(Trace& trace, std::string_view op, std::vector<ValueId> inputs, TypeId type = kF2) {
  return trace.add_node(intern_op(op), type, kNoAttrs, inputs);
}

void expect_graph(const Graph& graph, std::string_view text) {
  verify(graph, "build_graph");
  EXPECT_TRUE(same(graph, parse(text))) << print(graph);
}

TEST(Trace, EmptyOnesAreEqual) {
  Trace a, b;
  EXPECT_TRUE(a == b);
  param(a);
  EXPECT_FALSE(a == b);
  a.clear();
  EXPECT_TRUE(a == b);
  EXPECT_EQ(a.hash, b.hash);
}

TEST(Trace, EqualRecordsHaveEqualHashes) {
  const auto record = [](std::string_view op, TypeId type, AttrsId attrs, std::vector<ValueId> inputs) {
    Trace trace;
    param(trace), param(trace);
    trace.add_node(intern_op(op), type, attrs, inputs);
    return trace;
  };
  const AttrsId attrs = intern_attrs({Attr::of_int("alpha", 2)});
  const Trace base = record("aten::add.Tensor", kF2, attrs, {0, 1});
  EXPECT_TRUE(base == record("aten::add.Tensor", kF2, attrs, {0, 1}));
  for (const Trace& other : {record("aten::mul.Tensor", kF2, attrs, {0, 1}), record("aten::add.Tensor", f32({3}), attrs, {0, 1}),
                             record("aten::add.Tensor", kF2, kNoAttrs, {0, 1}), record("aten::add.Tensor", kF2, attrs, {1, 0}),
                             record("aten::add.Tensor", kF2, attrs, {0}), record("aten::add.Tensor", kF2, attrs, {0, kNone})}) {
    EXPECT_NE(base.hash, other.hash);
    EXPECT_FALSE(base == other);
  }
}

TEST(Trace, AnEqualHashIsNotEnough) {
  Trace a, b;
  param(a), node(a, "aten::neg", {0});
  param(b), node(b, "aten::relu", {0});
  b.hash = a.hash;
  EXPECT_FALSE(a == b);
}

TEST(Trace, ManyOperandsStandAside) {
  const auto record = [](std::vector<ValueId> inputs) {
    Trace trace;
    for (int i = 0; i < 6; ++i) param(trace);
    node(trace, "aten::cat", {0, 1, 2, 3});  // just fits
    node(trace, "aten::cat", inputs);
    node(trace, "aten::cat", {5, 5, 5, 5, 5, 5});
    return trace;
  };
  const Trace trace = record({0, 1, 2, 3, 4});
  EXPECT_THAT(trace.inputs(trace.records[6]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(trace.inputs(trace.records[7]), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(trace.inputs(trace.records[8]), ElementsAre(5, 5, 5, 5, 5, 5));
  EXPECT_TRUE(trace == record({0, 1, 2, 3, 4}));
  EXPECT_NE(trace.hash, record({0, 1, 2, 4, 3}).hash);
  EXPECT_FALSE(trace == record({0, 1, 2, 4, 3}));
}

TEST(BuildGraph, ManyOperands) {
  Trace trace;
  for (int i = 0; i < 5; ++i) param(trace);
  const ValueId out = node(trace, "aten::cat", {4, 3, 2, 1, 0}, f32({10}));
  expect_graph(build_graph(trace, std::vector<Root>{{out}}).graph,
               R"(graph(%0: f32[2], %1: f32[2], %2: f32[2], %3: f32[2], %4: f32[2]) {
    %5: f32[10] = aten::cat(%4, %3, %2, %1, %0)
    return %5 })");
}

TEST(BuildGraph, LeavesOutWhatNobodyNeeds) {
  Trace trace;
  const ValueId a = param(trace), s = scalar(trace), b = param(trace), t = scalar(trace), c = param(trace);
  const ValueId dead = node(trace, "aten::mul.Tensor", {b, s});
  node(trace, "aten::neg", {dead});
  const ValueId live = node(trace, "aten::mul.Tensor", {a, t});
  const ValueId out = node(trace, "aten::add.Tensor", {live, c});
  const TraceGraph built = build_graph(trace, std::vector<Root>{{out}});
  expect_graph(built.graph, R"(graph(%0: f32[2], %1: f64 scalar, %2: f32[2]) {
    %3: f32[2] = aten::mul.Tensor(%0, %1)
    %4: f32[2] = aten::add.Tensor(%3, %2)
    return %4 })");
  EXPECT_THAT(built.buffers, ElementsAre(0, 2));
  EXPECT_THAT(built.scalars, ElementsAre(1));
}

TEST(BuildGraph, WithoutRootsIsEmpty) {
  Trace trace;
  node(trace, "aten::neg", {param(trace)});
  const TraceGraph built = build_graph(trace, {});
  EXPECT_THAT(built.graph.nodes, IsEmpty());
  EXPECT_THAT(built.graph.params, IsEmpty());
  EXPECT_THAT(built.buffers, IsEmpty());
}

TEST(BuildGraph, KeepsTheOrderOfTheRoots) {
  Trace trace;
  const ValueId a = param(trace);
  const ValueId first = node(trace, "aten::neg", {a});
  const ValueId second = node(trace, "aten::relu", {first});
  expect_graph(build_graph(trace, std::vector<Root>{{second}, {first}}).graph, R"(graph(%0: f32[2]) {
    %1: f32[2] = aten::neg(%0)
    %2: f32[2] = aten::relu(%1)
    return %2, %1 })");
}

TEST(BuildGraph, AbsentOperandsStayAbsent) {
  Trace trace;
  const ValueId out = node(trace, "aten::clamp", {param(trace), kNone, kNone});
  EXPECT_THAT(build_graph(trace, std::vector<Root>{{out}}).graph.nodes[0].inputs, ElementsAre(0, kNone, kNone));
}

TEST(BuildGraph, ResultsOfOneNode) {
  Trace trace;
  const ValueId a = param(trace, f32({2, 3}));
  const ValueId values = node(trace, "aten::max.dim", {a});
  const ValueId indices = trace.add_result(values, 1, intern_contiguous(DType::kI64, std::vector<int64_t>{2}));
  const ValueId negated = node(trace, "aten::neg", {indices}, trace.records[indices].type);
  const auto graph_of = [&](std::vector<Root> roots) { return build_graph(trace, roots).graph; };

  expect_graph(graph_of({{values}, {negated}}), R"(graph(%0: f32[2,3]) {
    %1: f32[2], %2: i64[2] = aten::max.dim(%0)
    %3: i64[2] = aten::neg(%2)
    return %1, %3 })");
  // A result that nobody reads is not wanted, but keeps its place.
  EXPECT_THAT(graph_of({{values}}).nodes[0].outputs, ElementsAre(1, kNone));
  EXPECT_EQ(graph_of({{indices}}).nodes[0].outputs.size(), 2u);
  EXPECT_EQ(graph_of({{indices}}).outputs, std::vector<ValueId>{graph_of({{indices}}).nodes[0].outputs[1]});
  verify(graph_of({{indices}}), "build_graph");
}

TEST(BuildGraph, AnUndefinedFirstResult) {
  Trace trace;
  const ValueId grad = param(trace);
  const ValueId backward = node(trace, "aten::convolution_backward", {grad}, kNoType);
  const ValueId weight = trace.add_result(backward, 1, kF2);
  trace.add_result(backward, 2, kNoType);
  const Graph graph = build_graph(trace, std::vector<Root>{{weight}}).graph;
  expect_graph(graph, R"(graph(%0: f32[2]) {
    _, %1: f32[2], _ = aten::convolution_backward(%0)
    return %1 })");
}

TEST(BuildGraph, AReplacedParamMayBecomeTheOutput) {
  Trace trace;
  const ValueId a = param(trace), b = param(trace), c = param(trace, f32({1, 2}));
  const ValueId sum = node(trace, "aten::add.Tensor", {a, b});
  const ValueId product = node(trace, "aten::mul.Tensor", {sum, c}, f32({1, 2}));
  expect_graph(build_graph(trace, std::vector<Root>{{sum, b}, {product, c}}).graph,
               R"(graph(%0: f32[2], %1: f32[2] -> 0, %2: f32[1,2] -> 1) {
    %3: f32[2] = aten::add.Tensor(%0, %1)
    %4: f32[1,2] = aten::mul.Tensor(%3, %2)
    return %3, %4 })");
  // Not one of another shape, and each for one output only.
  expect_graph(build_graph(trace, std::vector<Root>{{product, a}, {sum, b}}).graph,
               R"(graph(%0: f32[2], %1: f32[2] -> 1, %2: f32[1,2]) {
    %3: f32[2] = aten::add.Tensor(%0, %1)
    %4: f32[1,2] = aten::mul.Tensor(%3, %2)
    return %4, %3 })");
}

TEST(BuildGraph, AParamThatIsReplacedButNotReadIsDropped) {
  Trace trace;
  const ValueId a = param(trace), b = param(trace);
  const ValueId out = node(trace, "aten::neg", {b});
  const TraceGraph built = build_graph(trace, std::vector<Root>{{out, a}});
  expect_graph(built.graph, "graph(%0: f32[2]) { %1: f32[2] = aten::neg(%0) return %1 }");
  EXPECT_THAT(built.buffers, ElementsAre(1));
}

TEST(BuildGraph, OneParamReplacedTwiceAliasesTheFirst) {
  Trace trace;
  const ValueId a = param(trace);
  const ValueId negated = node(trace, "aten::neg", {a}), positive = node(trace, "aten::relu", {a});
  EXPECT_EQ(build_graph(trace, std::vector<Root>{{negated, a}, {positive, a}}).graph.params[0].alias_output, 0u);
}

}  // namespace
}  // namespace ltc
