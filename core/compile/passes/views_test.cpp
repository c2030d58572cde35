#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "core/compile/passes/passes.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

using Dims = std::vector<int64_t>;
using Contents = std::vector<int64_t>;  // row-major

// Calls `visit` with every index of `sizes` in row-major order.
template <typename Visit>
void for_each_index(const Dims& sizes, const Visit& visit) {
  const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  for (int64_t flat = 0; flat < count; ++flat) {
    Dims index(sizes.size());
    int64_t rest = flat;
    for (size_t i = sizes.size(); i-- > 0; rest /= sizes[i]) index[i] = rest % sizes[i];
    visit(index);
  }
}

int64_t dot(const Dims& index, const Dims& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

// The meaning of the ops of this pass, one element at a time.
class Reference {
 public:
  explicit Reference(const Graph& graph) : graph_(graph) {}

  std::vector<Contents> run(const std::vector<Contents>& params) {
    for (size_t i = 0; i < params.size(); ++i) values_[graph_.params[i].value] = params[i];
    for (const Node& node : graph_.nodes) values_[node.outputs[0]] = evaluate(node);
    std::vector<Contents> outputs;
    for (const ValueId output : graph_.outputs) outputs.push_back(values_[output]);
    return outputs;
  }

 private:
  const Dims& ints(const Node& node, const char* name) const { return find_attr(attrs_of(node.attrs), name)->ints; }

  Contents evaluate(const Node& node) {
    const Contents& x = values_.at(node.inputs[0]);
    const Dims &from = graph_.type(node.inputs[0]).sizes, to = graph_.type(node.outputs[0]).sizes;
    const Dims strides = contiguous_strides(from);
    Contents result;
    const auto gather = [&](const auto& place) {
      for_each_index(to, [&](const Dims& index) { result.push_back(x.at(static_cast<size_t>(place(index)))); });
      return result;
    };
    const std::string& op = op_name(node.op);
    if (op == "aten::as_strided") {
      return gather([&](const Dims& i) { return ints(node, "storage_offset")[0] + dot(i, ints(node, "stride")); });
    }
    if (op == "aten::as_strided_scatter") {
      result = x;
      const Contents& source = values_.at(node.inputs[1]);
      size_t next = 0;
      for_each_index(ints(node, "size"), [&](const Dims& i) {
        result.at(static_cast<size_t>(ints(node, "storage_offset")[0] + dot(i, ints(node, "stride")))) = source.at(next++);
      });
      return result;
    }
    if (op == "aten::reshape") {
      EXPECT_EQ(ints(node, "shape"), to);
      return x;
    }
    if (op == "aten::permute") {
      Dims moved;
      for (size_t i = 0; i < to.size(); ++i) {
        const auto dim = static_cast<size_t>(ints(node, "dims")[i]);
        EXPECT_EQ(to[i], from[dim]);
        moved.push_back(strides[dim]);
      }
      return gather([&](const Dims& i) { return dot(i, moved); });
    }
    if (op == "aten::expand") {
      EXPECT_EQ(ints(node, "size"), to);
      Dims spread(to.size(), 0);
      for (size_t i = 0; i < from.size(); ++i) {
        const size_t place = to.size() - from.size() + i;
        EXPECT_TRUE(from[i] == 1 || from[i] == to[place]);
        if (from[i] != 1) spread[place] = strides[i];
      }
      return gather([&](const Dims& i) { return dot(i, spread); });
    }
    EXPECT_EQ(op, "aten::slice.Tensor");
    const auto dim = static_cast<size_t>(ints(node, "dim")[0]);
    const int64_t start = ints(node, "start")[0], end = ints(node, "end")[0], step = ints(node, "step")[0];
    EXPECT_EQ(to[dim], (end - start + step - 1) / step);
    EXPECT_LE(end, from[dim]);
    return gather([&](Dims i) {
      i[dim] = start + i[dim] * step;
      return dot(i, strides);
    });
  }

  const Graph& graph_;
  std::map<ValueId, Contents> values_;
};

TypeId type(const Dims& sizes) { return intern_contiguous(DType::kI64, sizes); }

Contents numbered(int64_t count) {
  Contents contents(static_cast<size_t>(count));
  std::iota(contents.begin(), contents.end(), 100);
  return contents;
}

Graph read_graph(const Dims& source, const Dims& sizes, const Dims& strides, int64_t offset) {
  Graph graph;
  const ValueId x = graph.add_param(type(source));
  graph.outputs = {
      graph.add_node("aten::as_strided", {x}, type(sizes),
                     {Attr::of_ints("size", sizes), Attr::of_ints("stride", strides), Attr::of_int("storage_offset", offset)})};
  return graph;
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node& node : graph.nodes) ops.push_back(op_name(node.op));
  return ops;
}

// The ops into which such a read is rewritten, without "aten::", after a check that they read the same.
std::string rewritten(const Dims& source, const Dims& sizes, const Dims& strides, int64_t offset = 0) {
  const Graph graph = read_graph(source, sizes, strides, offset);
  Graph after = graph;
  run_passes(after);
  verify(after, "passes");
  const Contents contents = numbered(graph.type(0).element_count);
  EXPECT_EQ(Reference(graph).run({contents}), Reference(after).run({contents})) << print(after);
  std::string ops;
  for (const std::string& op : ops_of(after)) ops += (ops.empty() ? "" : " ") + op.substr(6);
  return ops;
}

TEST(Views, WhatPeopleWrite) {
  EXPECT_EQ(rewritten({3, 4}, {4, 3}, {1, 4}), "permute");                       // x.t()
  EXPECT_EQ(rewritten({2, 3, 4}, {2, 4, 3}, {12, 1, 4}), "permute");             // x.transpose(1, 2)
  EXPECT_EQ(rewritten({3, 4}, {12}, {1}), "reshape");                            // x.flatten()
  EXPECT_EQ(rewritten({12}, {3, 4}, {4, 1}), "reshape");                         // x.view(3, 4)
  EXPECT_EQ(rewritten({3, 4}, {3, 1, 4}, {4, 4, 1}), "reshape");                 // x.unsqueeze(1)
  EXPECT_EQ(rewritten({4}, {3, 4}, {0, 1}), "expand");                           // x.expand(3, 4)
  EXPECT_EQ(rewritten({3, 1}, {3, 4}, {1, 0}), "expand");                        // x.expand(3, 4)
  EXPECT_EQ(rewritten({}, {2, 2}, {0, 0}), "expand");                            // scalar.expand(2, 2)
  EXPECT_EQ(rewritten({5, 4}, {2, 4}, {4, 1}, 4), "slice.Tensor");               // x[1:3]
  EXPECT_EQ(rewritten({5, 4}, {3, 4}, {8, 1}), "slice.Tensor");                  // x[::2]
  EXPECT_EQ(rewritten({5, 4}, {5, 2}, {4, 1}, 1), "slice.Tensor");               // x[:, 1:3]
  EXPECT_EQ(rewritten({5, 4}, {2, 2}, {4, 1}, 5), "slice.Tensor slice.Tensor");  // x[1:3, 1:3]
  EXPECT_EQ(rewritten({5, 4}, {4}, {1}, 8), "slice.Tensor reshape");             // x[2]
  EXPECT_EQ(rewritten({5, 4}, {5}, {4}, 2), "slice.Tensor reshape");             // x[:, 2]
  EXPECT_EQ(rewritten({4, 4}, {4}, {5}), "reshape slice.Tensor");                // x.diagonal()
  EXPECT_EQ(rewritten({100}, {4, 5}, {5, 1}, 23), "slice.Tensor reshape");       // a parameter of a flat buffer
  EXPECT_EQ(rewritten({100}, {5, 4}, {1, 5}, 23), "slice.Tensor reshape permute");
  EXPECT_EQ(rewritten({2, 6, 4}, {2, 3, 6, 4}, {24, 0, 4, 1}), "reshape expand");
  EXPECT_EQ(rewritten({8, 6}, {2, 6}, {6, 1}, 12), "slice.Tensor");              // x.split(2)[1]
  EXPECT_EQ(rewritten({2, 8, 3, 5}, {2, 3, 8, 5}, {120, 5, 15, 1}), "permute");  // attention heads
  EXPECT_EQ(rewritten({2, 4}, {0, 4}, {4, 1}, 4), "reshape slice.Tensor reshape");
  EXPECT_EQ(rewritten({3, 4}, {3, 4}, {4, 1}), "reshape");  // a copy: an output is no param
}

TEST(Views, LeavesWhatIsNoChain) {
  EXPECT_EQ(rewritten({8}, {3, 4}, {2, 1}), "as_strided");  // windows overlap
  EXPECT_EQ(rewritten({8}, {4, 2}, {1, 1}), "as_strided");
}

TEST(Views, FoldsChains) {
  Graph graph = parse(R"(graph(%0: f32[2,3,4]) {
    %1: f32[4,2,3] = aten::permute(%0) {dims=[2,0,1]}
    %2: f32[2,3,4] = aten::permute(%1) {dims=[1,2,-3]}
    %3: f32[6,4] = aten::reshape(%2) {shape=[6,4]}
    %4: f32[24] = aten::reshape(%3) {shape=[-1]}
    %5: f32[1,24] = aten::expand(%4) {size=[1,-1], implicit=false}
    %6: f32[5,24] = aten::expand(%5) {size=[5,-1], implicit=false}
    %7: f32[5,24] = aten::slice.Tensor(%6) {dim=0, start=none, end=none, step=1}
    %8: f32[5,24] = aten::neg(%7)
    return %8 })");
  run_passes(graph);
  EXPECT_TRUE(same(graph, parse(R"(graph(%0: f32[2,3,4]) {
    %4: f32[24] = aten::reshape(%0) {shape=[24]}
    %6: f32[5,24] = aten::expand(%4) {size=[5,24], implicit=false}
    %8: f32[5,24] = aten::neg(%6)
    return %8 })")))
      << print(graph);
}

TEST(Views, NoOpsDisappearButForOutputs) {
  Graph graph = parse(R"(graph(%0: f32[2,3], %1: f32[2,3]) {
    %2: f32[2,3;1,2] = aten::as_strided(%0) {size=[2,3], stride=[3,1], storage_offset=0}
    %3: f32[2,3] = aten::neg(%2)
    %4: f32[2,3] = aten::reshape(%3) {shape=[2,3]}
    %5: f32[2,3] = aten::reshape(%1) {shape=[2,3]}
    %6: f32[2,3] = aten::reshape(%4) {shape=[2,3]}
    return %4, %5, %6 })");
  run_passes(graph);
  verify(graph, "passes");
  EXPECT_TRUE(same(graph, parse(R"(graph(%0: f32[2,3], %1: f32[2,3]) {
    %3: f32[2,3] = aten::neg(%0)
    %5: f32[2,3] = aten::reshape(%1) {shape=[2,3]}
    %6: f32[2,3] = aten::reshape(%3) {shape=[2,3]}
    return %3, %5, %6 })")))
      << print(graph);
}

TEST(Views, WritesThatCoverEverything) {
  Graph graph = parse(R"(graph(%0: f32[2,3], %1: f32[6], %2: f32[0]) {
    %3: f32[2,3] = aten::as_strided_scatter(%0, %1) {size=[6], stride=[1], storage_offset=0}
    %4: f32[2,3] = aten::as_strided_scatter(%3, %1) {size=[6], stride=[1], storage_offset=0}
    %5: f32[2,3] = aten::as_strided_scatter(%4, %2) {size=[0], stride=[1], storage_offset=0}
    %6: f32[2,3] = aten::as_strided_scatter(%5, %1) {size=[3,2], stride=[1,3], storage_offset=0}
    return %6 })");
  run_passes(graph);
  EXPECT_TRUE(same(graph, parse(R"(graph(%0: f32[2,3], %1: f32[6], %2: f32[0]) {
    %3: f32[2,3] = aten::reshape(%1) {shape=[2,3]}
    %6: f32[2,3] = aten::as_strided_scatter(%3, %1) {size=[3,2], stride=[1,3], storage_offset=0}
    return %6 })")))
      << print(graph);
}

// Two layers of a kind in a row, the first without a gradient for its input: the mask leaves out the first result.
TEST(Views, LeavesNodesWithoutTheirFirstResult) {
  Graph graph = parse(R"(graph(%0: f32[2,3], %1: f32[2,3]) {
    %2: f32[2,3], %3: f32[3] = custom::norm_backward(%0, %1) {mask=[1,1]}
    _, %4: f32[3] = custom::norm_backward(%2, %1) {mask=[0,1]}
    _, %5: f32[3] = custom::norm_backward(%4, none) {mask=[0,1]}
    return %3, %5 })");
  const Graph before = graph;
  views(graph);
  verify(graph, "views");
  EXPECT_TRUE(same(graph, before)) << print(graph);
}

// Geometries that programs make: a few random view operations on a contiguous tensor.
class RandomViews {
 public:
  explicit RandomViews(uint32_t seed) : random_(seed) {}

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Dims shape() {
    Dims sizes(static_cast<size_t>(pick(0, 4)));
    for (int64_t& size : sizes) size = pick(0, 20) == 0 ? 0 : pick(1, 5);
    return sizes;
  }

  void change(Dims& sizes, Dims& strides, int64_t& offset) {
    if (sizes.empty() || pick(0, 5) == 0) {
      const auto at = pick(0, static_cast<int64_t>(sizes.size()));
      const int64_t copies = pick(1, 3);
      sizes.insert(sizes.begin() + at, copies);
      strides.insert(strides.begin() + at, copies == 1 ? pick(0, 3) : 0);
      return;
    }
    const auto a = static_cast<size_t>(pick(0, static_cast<int64_t>(sizes.size()) - 1));
    const auto b = static_cast<size_t>(pick(0, static_cast<int64_t>(sizes.size()) - 1));
    if (pick(0, 1) == 0) {
      std::swap(sizes[a], sizes[b]);
      std::swap(strides[a], strides[b]);
    } else if (sizes[a] > 1) {
      const int64_t start = pick(0, sizes[a] - 1), step = pick(1, 2);
      offset += start * strides[a];
      sizes[a] = (pick(start, sizes[a]) - start + step - 1) / step;
      strides[a] *= step;
    }
  }

 private:
  std::mt19937 random_;
};

TEST(Views, RandomViewsReadTheSame) {
  int left = 0, nodes = 0;
  constexpr int kGeometries = 4000;
  for (uint32_t seed = 0; seed < kGeometries; ++seed) {
    RandomViews random(seed);
    const Dims source = random.shape();
    Dims sizes = source, strides = contiguous_strides(source);
    int64_t offset = 0;
    for (int64_t i = random.pick(0, 5); i > 0; --i) random.change(sizes, strides, offset);
    const Graph graph = read_graph(source, sizes, strides, offset);
    Graph after = graph;
    views(after);
    verify(after, "views");
    const Contents contents = numbered(graph.type(0).element_count);
    ASSERT_EQ(Reference(graph).run({contents}), Reference(after).run({contents})) << seed << print(graph) << print(after);
    nodes += static_cast<int>(after.nodes.size());
    left += ops_of(after)[0] == "aten::as_strided";
  }
  EXPECT_EQ(left, 0);  // each is a view of a contiguous tensor, so a chain exists
  EXPECT_LT(nodes, 3 * kGeometries);
}

TEST(Views, RandomStridesReadTheSame) {
  for (uint32_t seed = 0; seed < 4000; ++seed) {
    RandomViews random(seed);
    const Dims source = random.shape();
    Dims sizes, strides;
    int64_t room = type_of(type(source)).element_count - 1;
    if (room < 0) continue;
    const int64_t offset = random.pick(0, room);
    room -= offset;
    for (int64_t i = random.pick(0, 3); i > 0; --i) {
      strides.push_back(random.pick(0, 8));
      sizes.push_back(random.pick(1, strides.back() == 0 ? 3 : 1 + room / strides.back()));
      room -= (sizes.back() - 1) * strides.back();
    }
    const Graph graph = read_graph(source, sizes, strides, offset);
    Graph after = graph;
    views(after);
    verify(after, "views");
    const Contents contents = numbered(graph.type(0).element_count);
    ASSERT_EQ(Reference(graph).run({contents}), Reference(after).run({contents})) << seed << print(graph) << print(after);
  }
}

}  // namespace
}  // namespace ltc
