#include "core/ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

using testing::HasSubstr;

Graph sample() {
  return parse(R"(graph(%0: f32[2] -> 0, %1: f64 scalar) {
    %2: f32[2] = aten::mul.Tensor(%0, %1)
    %3: f32[2] = aten::neg(%2)
    return %3, %2
  })");
}

std::string violation(const Graph& graph) {
  try {
    verify(graph, "the test");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInternal);
    EXPECT_THAT(error.what(), HasSubstr("after the test"));
    return error.what();
  }
  return "legal";
}

TEST(Graph, ATypeIsThatOfAValue) {
  const Graph graph = sample();
  EXPECT_EQ(graph.type(3).sizes, std::vector<int64_t>{2});
  const auto refusal = [&](ValueId value) {
    try {
      graph.type(value);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal(4), HasSubstr("the graph has no value 4; it has 4"));
  EXPECT_THAT(refusal(kNone), HasSubstr("has no type"));
}

TEST(Verify, AcceptsALegalGraphAndTheEmptyOne) {
  EXPECT_EQ(violation(sample()), "legal");
  EXPECT_EQ(violation(Graph()), "legal");
}

TEST(Verify, DefinedTwice) {
  Graph graph = sample();
  graph.nodes[1].outputs = {2};
  EXPECT_THAT(violation(graph), HasSubstr("aten::neg defines %2 a second time"));
  graph = sample();
  graph.params[1].value = 0;
  EXPECT_THAT(violation(graph), HasSubstr("a param defines %0 a second time"));
}

TEST(Verify, ReadBeforeDefinition) {
  Graph graph = sample();
  std::swap(graph.nodes[0], graph.nodes[1]);
  EXPECT_THAT(violation(graph), HasSubstr("aten::neg reads %2 before"));
  graph = sample();
  graph.nodes.pop_back();
  EXPECT_THAT(violation(graph), HasSubstr("return reads %3 before"));
}

TEST(Verify, IdsInRange) {
  Graph graph = sample();
  graph.nodes[1].inputs = {9};
  EXPECT_THAT(violation(graph), HasSubstr("reads %9, there are 4 values"));
  graph = sample();
  graph.nodes[1].outputs = {9};
  EXPECT_THAT(violation(graph), HasSubstr("defines %9, there are 4 values"));
  graph = sample();
  graph.outputs = {kNone};
  EXPECT_THAT(violation(graph), HasSubstr("return reads"));
}

TEST(Verify, Types) {
  Graph graph = sample();
  graph.types[2] = kNoType;
  EXPECT_THAT(violation(graph), HasSubstr("no type"));
  graph = sample();
  graph.params[0] = {0, true};
  EXPECT_THAT(violation(graph), HasSubstr("scalar param %0 has a rank"));
  graph = sample();
  graph.types[1] = scalar_type(DType::kF32);
  EXPECT_THAT(violation(graph), HasSubstr("scalar param %1 is not f64"));
  graph = sample();
  graph.params[1].alias_output = 1;
  EXPECT_THAT(violation(graph), HasSubstr("scalar param %1 has an alias_output"));
}

TEST(Verify, Outputs) {
  Graph graph = sample();
  graph.outputs = {3, 0};
  EXPECT_THAT(violation(graph), HasSubstr("output %0 is a param"));
  graph.outputs = {3, 3};
  EXPECT_THAT(violation(graph), HasSubstr("output %3 is listed twice"));
}

TEST(Verify, Aliases) {
  Graph graph = sample();
  graph.params[0].alias_output = 2;
  EXPECT_THAT(violation(graph), HasSubstr("aliases output 2 of 2"));
  graph = sample();
  graph.types[3] = intern_contiguous(DType::kF32, std::vector<int64_t>{3});
  EXPECT_THAT(violation(graph), HasSubstr("differ in dtype or sizes"));
  graph = sample();
  graph.params[1] = {1, false, 0};
  EXPECT_THAT(violation(graph), HasSubstr("two params alias output 0"));
}

TEST(Verify, Nodes) {
  Graph graph = sample();
  graph.nodes[0].op = kOpScalar;
  EXPECT_THAT(violation(graph), HasSubstr("reserved op 1"));
  graph = sample();
  graph.nodes.push_back({intern_op("aten::neg"), kNoAttrs, {2}, {kNone}});
  EXPECT_THAT(violation(graph), HasSubstr("aten::neg has no wanted output"));
}

}  // namespace
}  // namespace ltc
