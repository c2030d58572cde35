#include "core/compile/lowering/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

using testing::ElementsAre;

std::vector<Segment> cut(const Graph& graph, std::vector<uint32_t> clusters) {
  std::vector<Segment> segments = partition(graph, clusters);
  for (const Segment& segment : segments) verify(segment.graph, "partition");
  return segments;
}

TEST(Partition, WholeGraph) {
  const Graph graph = parse(R"(graph(%0: f32[2] -> 0, %1: f64 scalar, %2: f32[2]) {
    %3: f32[2] = aten::mul.Tensor(%0, %1)
    %4: f32[2] = aten::neg(%3)
    return %4, %3 })");
  const auto segments = cut(graph, {1, 2});
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_TRUE(segments[0].on_device);
  EXPECT_TRUE(same(segments[0].graph, graph));
  EXPECT_THAT(segments[0].inputs, ElementsAre(0, 2));
  EXPECT_THAT(segments[0].scalars, ElementsAre(0));
  EXPECT_THAT(segments[0].outputs, ElementsAre(4, 3));
  EXPECT_THAT(cut(Graph(), {}), testing::IsEmpty());
}

TEST(Partition, HostInTheMiddle) {
  const Graph graph = parse(R"(graph(%0: f32[2] -> 1, %1: f32[2] -> 0, %2: f64 scalar, %3: f64 scalar) {
    %4: f32[2] = aten::mul.Tensor(%0, %1)
    %5: f32[2] = aten::sort(%4, %3)
    %6: f32[2] = aten::add.Tensor(%5, %0)
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %6, %7 })");
  const auto segments = cut(graph, {1, 0, 1, 1});
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_TRUE(same(segments[0].graph, parse(R"(graph(%0: f32[2], %1: f32[2], %2: f64 scalar) {
    %4: f32[2] = aten::mul.Tensor(%0, %1)
    %7: f32[2] = aten::add.Tensor(%4, %2)
    return %7, %4 })")))
      << print(segments[0].graph);  // %0 is read later, %1's output is made later
  EXPECT_THAT(segments[0].outputs, ElementsAre(7, 4));
  EXPECT_FALSE(segments[1].on_device);
  EXPECT_THAT(segments[1].inputs, ElementsAre(4));
  EXPECT_THAT(segments[1].scalars, ElementsAre(1));
  EXPECT_TRUE(segments[2].on_device);
  EXPECT_THAT(segments[2].inputs, ElementsAre(0, 5));
  EXPECT_THAT(segments[2].nodes, ElementsAre(2));
}

TEST(Partition, DonationStaysWithItsSegment) {
  const Graph graph = parse(R"(graph(%0: f32[2] -> 1, %1: f32[2] -> 0) {
    %2: f32[2] = aten::sort(%1)
    %3: f32[2] = aten::neg(%1)
    %4: f32[2] = aten::add.Tensor(%2, %0)
    return %3, %4 })");
  const auto segments = cut(graph, {0, 1, 1});
  ASSERT_EQ(segments.size(), 3u);  // host and device of level 0, device of level 1
  EXPECT_EQ(segments[0].graph.params[0].alias_output, kNone);
  EXPECT_EQ(segments[1].graph.params[0].alias_output, 0u);
  EXPECT_EQ(segments[2].graph.params[0].alias_output, 0u);
}

constexpr const char* kSandwich = R"(graph(%0: f32[2], %1: f32[2]) {
    %2: f32[2] = aten::neg(%0)
    %3: f32[2] = aten::sort(%2)
    %4: f32[2] = aten::add.Tensor(%2, %3)
    return %4 })";

TEST(Partition, AClusterThatTheHostInterruptsGoesToTheHost) {
  const Graph graph = parse(kSandwich);
  std::vector<uint32_t> clusters = {7, 0, 7};
  const auto segments = partition(graph, clusters);
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_FALSE(segments[0].on_device);
  EXPECT_THAT(clusters, ElementsAre(0, 0, 0));
}

TEST(Partition, AClusterWaitsForItsLastOperand) {
  const Graph graph = parse(R"(graph(%0: f32[2], %1: f32[2]) {
    %2: f32[2] = aten::neg(%0)
    %3: f32[2] = aten::sort(%1)
    %4: f32[2] = aten::add.Tensor(%2, %3)
    return %4 })");
  const auto segments = cut(graph, {7, 0, 7});
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_THAT(segments[1].nodes, ElementsAre(0, 2));
}

// Every value as a term over the params: equal terms, equal values.
using Terms = std::map<ValueId, std::string>;

void evaluate(const Graph& graph, Terms& terms) {
  for (const Node& node : graph.nodes) {
    std::string term = op_name(node.op) + "(";
    for (const ValueId input : node.inputs) term += (input == kNone ? "none" : terms.at(input)) + ",";
    // Terms grow with the square of the depth; their hash is enough to tell them apart.
    term = std::to_string(std::hash<std::string>()(term));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone) terms[node.outputs[i]] = term + "." + std::to_string(i);
    }
  }
}

Terms evaluate_whole(const Graph& graph) {
  Terms terms;
  for (const Param& param : graph.params) terms[param.value] = "p" + std::to_string(param.value);
  evaluate(graph, terms);
  return terms;
}

// Runs the segments in order over the outer values; a donated buffer is gone.
Terms evaluate_segments(const Graph& graph, const std::vector<Segment>& segments) {
  Terms outer;
  std::vector<std::string> scalars;
  for (const Param& param : graph.params) {
    outer[param.value] = "p" + std::to_string(param.value);
    if (param.scalar) scalars.push_back(outer[param.value]);
  }
  for (const Segment& segment : segments) {
    Terms inner;
    size_t input = 0, scalar = 0;
    std::vector<ValueId> donated;
    for (const Param& param : segment.graph.params) {
      if (param.scalar) {
        inner[param.value] = scalars.at(segment.scalars.at(scalar++));
        continue;
      }
      const ValueId from = segment.inputs.at(input++);
      inner[param.value] = outer.at(from);
      if (param.alias_output != kNone) donated.push_back(from);
    }
    evaluate(segment.graph, inner);
    for (size_t i = 0; i < segment.outputs.size(); ++i) outer[segment.outputs[i]] = inner.at(segment.graph.outputs[i]);
    for (const ValueId value : donated) outer.erase(value);
  }
  return outer;
}

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  uint32_t pick(uint32_t below) { return std::uniform_int_distribution<uint32_t>(0, below - 1)(random_); }

  Graph build() {
    constexpr const char* kOps[] = {"test::a", "test::b", "test::c"};
    Graph graph;
    const TypeId type = scalar_type(DType::kF32);
    for (uint32_t i = 0; i < 5; ++i) graph.add_param(i % 2 ? scalar_type(DType::kF64) : type, i % 2 == 1);
    for (uint32_t i = 2 + pick(30); i > 0; --i) {
      std::vector<ValueId> inputs;
      for (uint32_t k = pick(4); k > 0; --k) {
        const auto values = static_cast<uint32_t>(graph.types.size());
        inputs.push_back(pick(8) == 0 ? kNone : pick(2) ? pick(values) : values - 1 - pick(std::min(values, 5u)));
      }
      graph.add_node(kOps[pick(3)], std::move(inputs), type);
      if (pick(4) == 0) graph.nodes.back().outputs.push_back(graph.add_value(type));
    }
    for (ValueId value = 5; value < graph.types.size(); ++value) {
      if (pick(4) == 0) graph.outputs.push_back(value);
    }
    std::ranges::shuffle(graph.outputs, random_);
    for (uint32_t i = 0; i < graph.outputs.size() && i < 3; ++i) graph.params[2 * i].alias_output = i;
    return graph;
  }

  std::vector<uint32_t> clusters(size_t count) {
    std::vector<uint32_t> result(count);
    for (uint32_t& cluster : result) cluster = pick(3) == 0 ? 0 : pick(2) ? 1 : 2 + pick(4);
    return result;
  }

 private:
  std::mt19937 random_;
};

TEST(Partition, RandomGraphsComputeTheSame) {
  size_t device_clusters = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    RandomGraph random(seed);
    const Graph graph = random.build();
    verify(graph, "build");
    const std::vector<uint32_t> claimed = random.clusters(graph.nodes.size());
    std::vector<uint32_t> clusters = claimed;
    const auto segments = partition(graph, clusters);

    const Terms whole = evaluate_whole(graph), parts = evaluate_segments(graph, segments);
    for (const ValueId output : graph.outputs) ASSERT_EQ(whole.at(output), parts.at(output)) << seed << print(graph);

    std::map<uint32_t, std::set<size_t>> segments_of;  // by cluster
    size_t nodes = 0;
    for (size_t i = 0; i < segments.size(); ++i) {
      verify(segments[i].graph, "partition");
      nodes += segments[i].nodes.size();
      for (const uint32_t node : segments[i].nodes) {
        ASSERT_EQ(segments[i].on_device, clusters[node] != 0);
        ASSERT_TRUE(clusters[node] == claimed[node] || (clusters[node] == 0 && claimed[node] >= 2));
        if (claimed[node] >= 2) segments_of[claimed[node]].insert(segments[i].on_device ? i : SIZE_MAX);
      }
    }
    ASSERT_EQ(nodes, graph.nodes.size());
    for (const auto& [cluster, places] : segments_of) {
      ASSERT_TRUE(places.size() == 1 || !places.contains(SIZE_MAX)) << seed;
      if (!places.contains(SIZE_MAX)) {
        ASSERT_EQ(places.size(), std::ranges::count(claimed, 0u) == 0 ? places.size() : 1u) << seed;
        ++device_clusters;
      }
    }
  }
  EXPECT_GT(device_clusters, 1000u);
}

}  // namespace
}  // namespace ltc
