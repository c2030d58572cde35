#include "core/compile/lowering/symbolic_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/compile/lowering/symbolic_programs.h"
#include "core/ir/binary.h"
#include "core/ir/text.h"

namespace ltc {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

// A linear layer of `n` rows whose result is flattened, and divided by its number of elements.
Graph layer(int64_t n, int64_t width = 3) {
  return parse(cat("graph(%0: f32[", n, ",5], %1: f32[5,", width, "], %2: f64 scalar) { %3: f32[", n, ",", width,
                   "] = aten::mm(%0, %1) %4: f32[", width * n, "] = aten::reshape(%3) {shape=[", width * n, "]} %5: f32[",
                   width * n + 2, "] = aten::constant_pad_nd(%4, %2) {pad=[1,1]} %6: f32[", width * n + 2,
                   "] = aten::div.Tensor(%5) {other=", width * n, ".0} return %6 }"));
}

std::optional<SymbolicGraph> unify(const Graph& then, const Graph& now) {
  return SymbolicGraph::unify(SymbolicGraph(GraphSkeleton(then)), GraphSkeleton(now));
}

// "2*s0+1"
std::string formula(const ltc_symbolic_number& number) {
  return cat(number.attr == LTC_NONE ? "%" : "node ", number.owner, ".", number.element, " = ", number.scale, "*s", number.symbol,
             "+", number.offset);
}

std::vector<std::string> formulas(const SymbolicGraph& graph) {
  std::vector<std::string> texts;
  for (const auto& number : graph.numbers()) texts.push_back(formula(number));
  return texts;
}

TEST(SymbolicGraph, LearnsWhatFollowsTheBatch) {
  const auto graph = unify(layer(8), layer(16));
  ASSERT_TRUE(graph);
  EXPECT_EQ(graph->symbol_count(), 2u);
  EXPECT_THAT(formulas(*graph), ElementsAre("%0.0 = 1*s0+0", "%3.0 = 1*s0+0", "%4.0 = 3*s0+0", "node 1.0 = 3*s0+0",
                                            "node 3.0 = 3*s0+0", "%5.0 = 1*s1+0", "%6.0 = 1*s1+0"));
}

TEST(SymbolicGraph, MatchesEverySizeOfTheSameLaw) {
  const auto graph = unify(layer(8), layer(16));
  for (const int64_t n : {0, 1, 2, 8, 1000}) EXPECT_TRUE(graph->match(GraphSkeleton(layer(n)))) << n;
}

TEST(SymbolicGraph, ComparesEveryNumber) {
  const auto general = unify(layer(8), layer(16));
  const GraphSkeleton fits(layer(24));
  ASSERT_TRUE(general->match(fits));
  for (size_t i = 0; i < fits.numbers.size(); ++i) {
    GraphSkeleton changed = fits;
    ++changed.numbers[i];
    EXPECT_FALSE(general->match(changed)) << "number " << i;
  }
  EXPECT_FALSE(general->match(GraphSkeleton(layer(24, 4))));
}

TEST(SymbolicGraph, AnotherStructureIsAnotherGraph) {
  const auto with = [](const std::string& op, const std::string& attrs, const char* dtype = "f32") {
    return parse(cat("graph(%0: ", dtype, "[4]) { %1: ", dtype, "[4] = ", op, "(%0) {", attrs, "} return %1 }"));
  };
  const Graph graph = with("aten::x", "a=1, b=0.5, c=true, d=\"e\"");
  EXPECT_TRUE(unify(graph, graph));
  for (const Graph& other : {with("aten::y", "a=1, b=0.5, c=true, d=\"e\""), with("aten::x", "a=1, b=0.25, c=true, d=\"e\""),
                             with("aten::x", "a=1, b=0.5, c=false, d=\"e\""), with("aten::x", "a=1, b=0.5, c=true, d=\"f\""),
                             with("aten::x", "a=1.0, b=0.5, c=true, d=\"e\""), with("aten::x", "z=1, b=0.5, c=true, d=\"e\""),
                             with("aten::x", "a=[1], b=0.5, c=true, d=\"e\""), with("aten::x", "a=1, b=0.5, c=true"),
                             with("aten::x", "a=1, b=0.5, c=true, d=\"e\"", "i64"),
                             with("aten::x", "a=1, b=-0.0, c=true, d=\"e\""), with("aten::x", "a=1, b=nan, c=true, d=\"e\"")})
    EXPECT_FALSE(unify(graph, other)) << print(other);
}

TEST(SymbolicGraph, ZeroIsNotMinusZero) {
  const auto with = [](const char* number) {
    return parse(cat("graph(%0: f32[4]) { %1: f32[4] = aten::x(%0) {a=", number, "} return %1 }"));
  };
  EXPECT_FALSE(SymbolicGraph(GraphSkeleton(with("0.0"))).match(GraphSkeleton(with("-0.0"))));
  EXPECT_TRUE(SymbolicGraph(GraphSkeleton(with("-0.0"))).match(GraphSkeleton(with("-0.0"))));
  EXPECT_TRUE(SymbolicGraph(GraphSkeleton(with("nan"))).match(GraphSkeleton(with("nan"))));
}

TEST(SymbolicGraph, SizesOfZeroAndOneTeachNothing) {
  for (const int64_t n : {0, 1}) {
    EXPECT_FALSE(unify(layer(n), layer(8)));
    EXPECT_FALSE(unify(layer(8), layer(n)));
  }
}

TEST(SymbolicGraph, ASizeThatFitsByChanceIsComparedAndLearnedAgain) {
  const auto pair = [](int64_t a, int64_t b) {
    return parse(cat("graph(%0: f32[", a, "], %1: f32[", b, "]) { %2: f32[", a, "] = aten::neg(%0) %3: f32[", b,
                     "] = aten::neg(%1) return %2, %3 }"));
  };
  const auto one = unify(pair(4, 4), pair(6, 6));
  EXPECT_EQ(one->symbol_count(), 1u);
  EXPECT_FALSE(one->match(GraphSkeleton(pair(6, 8))));
  const auto two = SymbolicGraph::unify(*one, GraphSkeleton(pair(8, 10)));
  EXPECT_EQ(two->symbol_count(), 2u);
  EXPECT_THAT(two->match(GraphSkeleton(pair(3, 7))), Optional(ElementsAre(3, 7)));
}

TEST(SymbolicGraph, NumbersTooLargeForALawAreSymbols) {
  const auto with = [](int64_t size, int64_t end) {
    return parse(cat("graph(%0: u8[", size, "]) { %1: u8[", size, "] = aten::slice.Tensor(%0) {end=", end, "} return %1 }"));
  };
  const auto graph = unify(with(4, INT64_MIN), with(8, INT64_MAX));
  EXPECT_EQ(graph->symbol_count(), 2u);
  EXPECT_TRUE(graph->match(GraphSkeleton(with(5, 7))));
  const auto doubled = unify(with(4, 8), with(8, 16));
  EXPECT_FALSE(doubled->match(GraphSkeleton(with(INT64_MAX, -2))));
}

// ---- what was compiled

std::shared_ptr<ltc_executable> executable(std::shared_ptr<int> alive) {
  return {std::move(alive), reinterpret_cast<ltc_executable*>(1)};
}

TEST(SymbolicGraph, IsTheSameFromTheDisk) {
  ByteWriter out;
  unify(layer(8), layer(16))->write(out, layer(16));
  const std::string bytes = out.take();
  ByteReader in(bytes);
  const SymbolicGraph read = SymbolicGraph::read(in);
  EXPECT_TRUE(in.at_end());
  EXPECT_EQ(formulas(read), formulas(*unify(layer(8), layer(16))));
  EXPECT_EQ(read.match(GraphSkeleton(layer(24))), unify(layer(8), layer(16))->match(GraphSkeleton(layer(24))));
  EXPECT_FALSE(read.match(GraphSkeleton(layer(24, 4))));
}

TEST(SymbolicGraph, DamagedBytesAreNoGraph) {
  ByteWriter out;
  unify(layer(8), layer(16))->write(out, layer(16));
  const std::string bytes = out.take();
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(~damaged[at]);
    ByteReader in(damaged);
    try {
      (void)SymbolicGraph::read(in).match(GraphSkeleton(layer(24)));  // reads nothing outside
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kDataCorrupt);
    }
  }
}

TEST(SymbolicGraph, WithoutNumbersAllSizesAreOne) {
  const auto bytes = [](const Graph& graph) {
    ByteWriter out;
    write_graph(out, without_numbers(graph));
    return out.take();
  };
  EXPECT_EQ(bytes(layer(8)), bytes(layer(16, 4)));
  EXPECT_NE(bytes(layer(8)), bytes(parse("graph(%0: f32[8,5]) { %1: f32[8,5] = aten::neg(%0) return %1 }")));
}

TEST(SymbolicPrograms, LearnFromTheMostSimilar) {
  SymbolicPrograms programs(4);
  programs.insert(SymbolicGraph(GraphSkeleton(layer(8, 3))), 0, {});
  programs.insert(SymbolicGraph(GraphSkeleton(layer(8, 7))), 0, {});
  EXPECT_TRUE(programs.find(GraphSkeleton(layer(8, 3)), 0));
  EXPECT_FALSE(programs.find(GraphSkeleton(layer(16, 3)), 0));
  const SymbolicGraph general = programs.unify_with_nearest(GraphSkeleton(layer(16, 3)), 0);
  EXPECT_TRUE(general.match(GraphSkeleton(layer(5, 3))));
  EXPECT_FALSE(general.match(GraphSkeleton(layer(5, 7))));
}

TEST(SymbolicPrograms, MakeAGraphWhenTheyAreAsked) {
  SymbolicPrograms programs(2);
  int made = 0;
  const auto later = [&](int64_t taps) {
    return [&made, taps] {
      ++made;
      return SymbolicGraph(GraphSkeleton(layer(8, taps)));
    };
  };
  programs.insert_later(later(3), 0, {});
  EXPECT_EQ(made, 0);
  EXPECT_TRUE(programs.find(GraphSkeleton(layer(8, 3)), 0));
  EXPECT_FALSE(programs.find(GraphSkeleton(layer(8, 5)), 0));
  EXPECT_EQ(made, 1);
  programs.insert_later(later(5), 0, {});
  programs.insert_later(later(7), 0, {});
  EXPECT_EQ(made, 3) << "there are never more than the capacity";
}

TEST(SymbolicPrograms, KnowTheirPrecision) {
  SymbolicPrograms programs(4);
  programs.insert(SymbolicGraph(GraphSkeleton(layer(8))), 1, {});
  EXPECT_FALSE(programs.find(GraphSkeleton(layer(8)), 0));
  EXPECT_EQ(programs.unify_with_nearest(GraphSkeleton(layer(16)), 0).symbol_count(), 0u);
  EXPECT_EQ(programs.unify_with_nearest(GraphSkeleton(layer(16)), 1).symbol_count(), 2u);
}

TEST(SymbolicPrograms, TheLeastRecentlyUsedLeaves) {
  SymbolicPrograms programs(2);
  auto first = std::make_shared<int>(), second = std::make_shared<int>();
  programs.insert(SymbolicGraph(GraphSkeleton(layer(8, 3))), 0, {nullptr, executable(first)});
  programs.insert(SymbolicGraph(GraphSkeleton(layer(8, 5))), 0, {nullptr, executable(second)});
  EXPECT_TRUE(programs.find(GraphSkeleton(layer(8, 3)), 0));
  programs.insert(SymbolicGraph(GraphSkeleton(layer(8, 7))), 0, {});
  EXPECT_EQ(first.use_count(), 2);
  EXPECT_EQ(second.use_count(), 1);
}

TEST(SymbolicPrograms, AreBoundedByBytes) {
  SymbolicPrograms one(2);
  one.insert(SymbolicGraph(GraphSkeleton(layer(8, 3))), 0, {});
  SymbolicPrograms programs(100, 2 * one.bytes());
  for (const int64_t taps : {3, 5, 7, 9}) programs.insert(SymbolicGraph(GraphSkeleton(layer(8, taps))), 0, {});
  EXPECT_EQ(programs.bytes(), 2 * one.bytes());
  EXPECT_FALSE(programs.find(GraphSkeleton(layer(8, 5)), 0));
  EXPECT_TRUE(programs.find(GraphSkeleton(layer(8, 7)), 0));
  SymbolicPrograms small(100, 1);
  small.insert(SymbolicGraph(GraphSkeleton(layer(8, 3))), 0, {});
  EXPECT_TRUE(small.find(GraphSkeleton(layer(8, 3)), 0));
}

}  // namespace
}  // namespace ltc
