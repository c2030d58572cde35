#include "core/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

using testing::HasSubstr;

// Values are numbered in the order of definition, so that parsing keeps the numbers.
constexpr const char* kSample = R"(graph(%0: f32[2,3] -> 0, %1: f64 scalar, %2: bool[]) {
  %3: f32[2,3] = aten::mul.Tensor(%0, %1)
  %4: f32[3,2] = aten::permute(%3) {dims=[1,0]}
  %5: f32[2,3], _ = aten::max.dim(%3, none) {dim=0, keepdim=false}
  _, %6: i64[0,4;1,7] = vendor::split(%2, %3, %3) {tensors.count=2}
  return %5, %6
}
)";

TEST(Text, PrintsWhatItParses) {
  const Graph graph = parse(kSample);
  verify(graph, "parse");
  EXPECT_EQ(print(graph), kSample);
  EXPECT_EQ(graph.params[0].alias_output, 0u);
  EXPECT_TRUE(graph.params[1].scalar);
  EXPECT_EQ(graph.nodes[2].inputs[1], kNone);
  EXPECT_EQ(graph.nodes[2].outputs[1], kNone);
}

TEST(Text, Locations) {
  const std::string text = R"(graph(%0: f32[2]) {
  %1: f32[2] = aten::neg(%0)  # train.py:31
  %2: f32[2] = aten::cumsum(%1) {dim=0}  # dir with space/a.py:7 (in its backward)
  %3: f32[2] = aten::neg(%2)
  return %3
}
)";
  const Graph graph = parse(text);
  EXPECT_EQ(print(graph), text);
  EXPECT_EQ(graph.nodes[0].location, intern_location("train.py:31"));
  EXPECT_EQ(graph.nodes[2].location, kNoLocation);
  Graph moved = graph;
  moved.nodes[0].location = intern_location("train.py:32");
  EXPECT_TRUE(same(graph, moved));
}

TEST(Location, Texts) {
  EXPECT_EQ(intern_location(""), kNoLocation);
  const LocationId line = intern_location("train.py:31");
  EXPECT_EQ(intern_location("train.py:31"), line);
  EXPECT_EQ(location_text(line), "train.py:31");
  EXPECT_EQ(location_text(line | kInBackward), "train.py:31 (in its backward)");
  EXPECT_EQ(location_text(kInBackward), "");
  EXPECT_EQ(at_location(line), " at train.py:31");
  EXPECT_EQ(at_location(kNoLocation), "");
}

TEST(Text, EmptyGraphs) {
  const std::string empty = "graph() {\n  return\n}\n";
  EXPECT_EQ(print(Graph()), empty);
  EXPECT_TRUE(same(parse(empty), Graph()));
  EXPECT_EQ(parse("graph(%7: c64[]) { return }").params.size(), 1u);
}

TEST(Text, NumberingIsFree) {
  const Graph a = parse("graph(%5: u8[4]) { %1: u8[4] = aten::neg(%5) return %1 }");
  const Graph b = parse("graph(%0: u8[4]) {\n%8: u8[4]=aten::neg( %0 )\nreturn %8}");
  EXPECT_TRUE(same(a, b));
}

// One node with one attribute, through the text and back.
AttrList through_text(const AttrList& attrs) {
  Graph graph;
  const TypeId type = scalar_type(DType::kF32);
  graph.outputs = {graph.add_node("test::op", {}, type, attrs)};
  const Graph back = parse(print(graph));
  EXPECT_TRUE(same(graph, back)) << print(graph);
  return attrs_of(back.nodes[0].attrs);
}

TEST(Text, EveryKindOfAttribute) {
  const double inf = std::numeric_limits<double>::infinity();
  const AttrList attrs = {
      {"none", AttrKind::kNone},
      {"int", AttrKind::kInt, {INT64_MIN}},
      {"float", AttrKind::kFloat, {}, {0.1}},
      {"true", AttrKind::kBool, {1}},
      {"false", AttrKind::kBool, {0}},
      {"string", AttrKind::kString, {}, {}, {"a \"b\"\\ \n\t\x01 \x7f grün"}},
      {"empty", AttrKind::kString, {}, {}, {""}},
      {"dtype", AttrKind::kDType, {static_cast<int64_t>(DType::kF32)}},
      {"bool", AttrKind::kDType, {static_cast<int64_t>(DType::kBool)}},
      {"ints", AttrKind::kInts, {1, -2, INT64_MAX}},
      {"floats", AttrKind::kFloats, {}, {1.0, inf, -inf, -0.0, 5e-324, 1e300, 1e22}},
      {"strings", AttrKind::kStrings, {}, {}, {"a", "", "b,]"}},
      {"no_ints", AttrKind::kInts},
      {"no_floats", AttrKind::kFloats},
      {"no_strings", AttrKind::kStrings},
  };
  EXPECT_EQ(through_text(attrs), attrs);
}

TEST(Text, FloatsThatAreNotNumbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const AttrList back = through_text({{"a", AttrKind::kFloats, {}, {nan, -0.0}}, {"b", AttrKind::kFloat, {}, {nan}}});
  EXPECT_TRUE(std::isnan(back[0].floats[0]));
  EXPECT_TRUE(std::signbit(back[0].floats[1]));
  EXPECT_TRUE(std::isnan(back[1].floats[0]));
}

TEST(Text, Same) {
  const Graph graph = parse(kSample);
  const auto differs = [&](auto change) {
    Graph other = graph;
    change(other);
    return !same(graph, other);
  };
  EXPECT_FALSE(differs([](Graph&) {}));
  EXPECT_TRUE(differs([](Graph& g) { g.params[0].alias_output = kNone; }));
  EXPECT_TRUE(differs([](Graph& g) { g.params.pop_back(); }));
  EXPECT_TRUE(differs([](Graph& g) { g.types[0] = g.types[4]; }));
  EXPECT_TRUE(differs([](Graph& g) { g.types[5] = g.types[4]; }));
  EXPECT_TRUE(differs([](Graph& g) { g.nodes[0].inputs = {1, 0}; }));
  EXPECT_TRUE(differs([](Graph& g) { g.nodes[1].attrs = kNoAttrs; }));
  EXPECT_TRUE(differs([](Graph& g) { g.nodes[1].op = g.nodes[0].op; }));
  EXPECT_TRUE(differs([](Graph& g) { std::swap(g.outputs[0], g.outputs[1]); }));
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "parsed";
}

TEST(Text, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_THAT(error_of("grape()"), HasSubstr("line 1: expected 'graph'"));
  EXPECT_THAT(error_of("graph(%0: f33[2]) {"), HasSubstr("expected a dtype, got 'f33[2]) {'"));
  EXPECT_THAT(error_of("graph(%0: f32[2) {"), HasSubstr("expected ']'"));
  EXPECT_THAT(error_of("graph(%0: f32[2,3;1]) {"), HasSubstr("expected one stride per size"));
  EXPECT_THAT(error_of("graph(%x: f32[2]) {"), HasSubstr("expected an integer, got 'x: f32[2]) {'"));
  EXPECT_THAT(error_of("graph() {\n\n%0: f32[] = a::b(%1)"), HasSubstr("line 3: expected a value that is defined before"));
  EXPECT_THAT(error_of("graph() {\n%0: f32[] = a::b(%0)"), HasSubstr("line 2: expected a value that is defined before"));
  EXPECT_THAT(error_of("graph() {\n%0: f32[] = (%0)"), HasSubstr("line 2: expected the name of an op"));
  EXPECT_THAT(error_of("graph() { %0: f32[] = a::b() {x=?}"), HasSubstr("expected the value of an attribute"));
  EXPECT_THAT(error_of("graph() { %0: f32[] = a::b() {x=[1,2.0]}"), HasSubstr("expected a list of one kind"));
  EXPECT_THAT(error_of("graph() { %0: f32[] = a::b() {x=\"a\\q\"}"), HasSubstr("expected one of"));
  EXPECT_THAT(error_of("graph() { %0: f32[] = a::b() {x=\"a\n\"}"), HasSubstr("expected '\"'"));
  EXPECT_THAT(error_of("graph(%0: u8[], %0: u8[]) { return }"), HasSubstr("expected %0 to be defined once"));
  EXPECT_THAT(error_of("graph() { return } more"), HasSubstr("expected the end"));
  EXPECT_THAT(error_of(""), HasSubstr("line 1"));
}

}  // namespace
}  // namespace ltc
