// The compiler of this plugin: each op becomes a loop over strided memory, by one row of the table at the end.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "ltc/graph.hpp"

namespace twenty_ops {

using ltc::plugin::bytes_of;
using ltc::plugin::Graph;
using ltc::plugin::Node;
using Sizes = std::vector<int64_t>;

// ---- the target: loops

struct Operand {
  uint32_t value;
  Sizes strides;  // in elements, for each dim of the loop
};

struct Loop {
  void (*body)(const Loop& loop, char* const* memory);  // by value
  std::optional<float> initial;                         // of all elements of the result
  Sizes sizes = {};
  std::vector<Operand> operands = {};  // the result, then the inputs
};
using Body = decltype(Loop::body);

// Calls `each` with the element of every operand, for all indices of the loop.
template <typename Each>
void walk(const Loop& loop, const Each& each) {
  Sizes index(loop.sizes.size(), 0), at(loop.operands.size(), 0);
  if (std::ranges::count(loop.sizes, 0) > 0) return;
  while (true) {
    each(at.data());
    size_t dim = index.size();
    for (bool wraps = true; wraps; index[dim] = wraps ? 0 : index[dim] + 1) {
      if (dim-- == 0) return;
      wraps = index[dim] + 1 == loop.sizes[dim];
      for (size_t i = 0; i < at.size(); ++i) at[i] += loop.operands[i].strides[dim] * (wraps ? -index[dim] : 1);
    }
  }
}

template <typename T>
T* elements(const Loop& loop, char* const* memory, size_t operand) {
  return reinterpret_cast<T*>(memory[loop.operands[operand].value]);
}

// Applies void f(Out& result, In... inputs) to all elements.
template <auto f, typename Out, typename... In>
void apply(const Loop& loop, char* const* memory, void (*)(Out&, In...)) {
  const auto with = [&]<size_t... i>(std::index_sequence<i...>) {
    Out* const out = elements<Out>(loop, memory, 0);
    const std::tuple in{elements<const In>(loop, memory, i + 1)...};
    walk(loop, [&](const int64_t* at) { f(out[at[0]], std::get<i>(in)[at[i + 1]]...); });
  };
  with(std::index_sequence_for<In...>());
}
template <auto f>
void each(const Loop& loop, char* const* memory) {
  apply<f>(loop, memory, +f);
}

// ---- from nodes to loops

inline Sizes sizes_of(const ltc_type& type) { return {type.sizes, type.sizes + type.rank}; }
inline size_t dim_of(int64_t dim, size_t rank) { return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim); }

// Strides of an operand of these sizes; 0 for the dims that are left out.
inline Sizes dense(const Sizes& sizes, const std::vector<bool>& left_out = {}) {
  Sizes strides(sizes.size(), 0);
  int64_t stride = 1;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    if (dim < left_out.size() && left_out[dim]) continue;
    strides[dim] = stride;
    stride *= sizes[dim];
  }
  return strides;
}

inline void elementwise(const Node& node, Loop& loop) {
  loop.sizes = sizes_of(node.output(0));
  loop.operands = {{node.outputs()[0], dense(loop.sizes)}};
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Sizes sizes = sizes_of(node.input(i)), from = dense(sizes);
    Sizes strides(loop.sizes.size(), 0);
    for (size_t k = 1; k <= sizes.size(); ++k) {
      if (sizes[sizes.size() - k] != 1) strides[strides.size() - k] = from[sizes.size() - k];  // else it is broadcast
    }
    loop.operands.push_back({node.inputs()[i], strides});
  }
}

inline void reshape(const Node& node, Loop& loop) {
  loop.sizes = sizes_of(node.input(0));
  loop.operands = {{node.outputs()[0], dense(loop.sizes)}, {node.inputs()[0], dense(loop.sizes)}};
}

inline void permute(const Node& node, Loop& loop) {
  elementwise(node, loop);
  const Sizes from = dense(sizes_of(node.input(0)));
  const auto dims = node.get<std::span<const int64_t>>("dims");
  for (size_t i = 0; i < dims.size(); ++i) loop.operands[1].strides[i] = from[dim_of(dims[i], from.size())];
}

inline void reduce(const Node& node, Loop& loop) {
  loop.sizes = sizes_of(node.input(0));
  const auto dims = node.get<std::span<const int64_t>>("dim", {});
  std::vector<bool> is_reduced(std::max<size_t>(loop.sizes.size(), 1), dims.empty());  // dim 0 of rank 0 is legal
  for (const int64_t dim : dims) is_reduced[dim_of(dim, is_reduced.size())] = true;
  loop.operands = {{node.outputs()[0], dense(loop.sizes, is_reduced)}, {node.inputs()[0], dense(loop.sizes)}};
}

inline void multiply(const Node& node, Loop& loop) {
  const int64_t rows = node.output(0).sizes[1], columns = node.output(0).sizes[2], inner = node.input(0).sizes[2];
  loop.sizes = {node.output(0).sizes[0], rows, columns, inner};
  loop.operands = {{node.outputs()[0], {rows * columns, columns, 1, 0}},
                   {node.inputs()[0], {rows * inner, inner, 0, 1}},
                   {node.inputs()[1], {inner * columns, 0, 1, columns}}};
}

// ---- the table of ops

// Tensors of F32, and numbers that are passed by value: see execute().
inline bool are_floats(const Node& node, size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    const ltc_dtype dtype = node.input(i).dtype;
    if (node.graph.is_scalar(node.inputs()[i]) ? dtype == LTC_C128 : dtype != LTC_F32) return false;
  }
  return true;
}
inline bool floats(const Node& node) { return are_floats(node, 0, node.inputs().size()) && node.output(0).dtype == LTC_F32; }
inline bool sum(const Node& node) { return floats(node) && node.get<double>("alpha", 0) == 1; }
inline bool test(const Node& node) { return are_floats(node, 0, 2); }
inline bool choice(const Node& node) {
  return node.input(0).dtype == LTC_BOOL && !node.graph.is_scalar(node.inputs()[0]) && are_floats(node, 1, 3);
}

struct Op {
  Body body;
  void (*lower)(const Node& node, Loop& loop);
  std::optional<float> initial = {};
};

// NaN if one of them is.
inline void larger(float& r, float x, float y) { r = x != x || x > y ? x : y; }
inline void smaller(float& r, float x, float y) { r = x != x || x < y ? x : y; }

// clang-format off
inline const ltc::plugin::OpTable<Op> ops{
    {"aten::neg", {each<[](float& r, float x) { r = -x; }>, elementwise}, floats},
    {"aten::abs", {each<[](float& r, float x) { r = std::fabs(x); }>, elementwise}, floats},
    {"aten::exp", {each<[](float& r, float x) { r = std::exp(x); }>, elementwise}, floats},
    {"aten::log", {each<[](float& r, float x) { r = std::log(x); }>, elementwise}, floats},
    {"aten::sqrt", {each<[](float& r, float x) { r = std::sqrt(x); }>, elementwise}, floats},
    {"aten::sin", {each<[](float& r, float x) { r = std::sin(x); }>, elementwise}, floats},
    {"aten::tanh", {each<[](float& r, float x) { r = std::tanh(x); }>, elementwise}, floats},
    {"aten::add.Tensor", {each<[](float& r, float x, float y) { r = x + y; }>, elementwise}, sum},
    {"aten::mul.Tensor", {each<[](float& r, float x, float y) { r = x * y; }>, elementwise}, floats},
    {"aten::div.Tensor", {each<[](float& r, float x, float y) { r = x / y; }>, elementwise}, floats},
    {"aten::maximum", {each<larger>, elementwise}, floats},
    {"aten::minimum", {each<smaller>, elementwise}, floats},
    {"aten::lt.Tensor", {each<[](bool& r, float x, float y) { r = x < y; }>, elementwise}, test},
    {"aten::where.self", {each<[](float& r, bool c, float x, float y) { r = c ? x : y; }>, elementwise}, choice},
    {"aten::reshape", {each<[](float& r, float x) { r = x; }>, reshape}, floats},
    {"aten::permute", {each<[](float& r, float x) { r = x; }>, permute}, floats},
    {"aten::expand", {each<[](float& r, float x) { r = x; }>, elementwise}, floats},
    {"aten::sum.dim_IntList", {each<[](float& r, float x) { r += x; }>, reduce, 0.0f}, floats},
    {"aten::amax", {each<[](float& r, float x) { larger(r, r, x); }>, reduce, -INFINITY}, floats},
    {"aten::bmm", {each<[](float& r, float x, float y) { r += x * y; }>, multiply, 0.0f}, floats},
};
// clang-format on

// ---- a graph as loops

struct Value {
  ltc_dtype dtype;
  uint64_t bytes;
};

// Immutable once made: any thread may run it.
struct Plan {
  std::vector<Loop> loops = {};
  std::vector<Value> values = {};
  std::vector<uint32_t> inputs = {}, scalars = {}, outputs = {};  // ids of values

  explicit Plan(const ltc_graph& abi) {
    const Graph graph(abi);
    for (const ltc_type* type : std::span(abi.types, abi.value_count)) values.push_back({type->dtype, bytes_of(*type)});
    for (const ltc_param* param : graph.params()) (graph.is_scalar(param->value) ? scalars : inputs).push_back(param->value);
    outputs.assign(graph.outputs().begin(), graph.outputs().end());
    for (size_t i = 0; i < graph.size(); ++i) {
      const Node node = graph.node(i);
      const Op& op = ops.at(node).handler;
      op.lower(node, loops.emplace_back(Loop{op.body, op.initial}));
    }
  }

  // `memory` by value; nullptr for those in between, which live as long as the run.
  void run(std::vector<char*> memory) const {
    std::vector<std::unique_ptr<char[]>> made;
    for (size_t i = 0; i < values.size(); ++i) {
      if (memory[i]) continue;
      made.push_back(std::make_unique_for_overwrite<char[]>(values[i].bytes));
      memory[i] = made.back().get();
    }
    for (const Loop& loop : loops) {
      const uint32_t result = loop.operands[0].value;
      if (loop.initial) std::fill_n(elements<float>(loop, memory.data(), 0), values[result].bytes / sizeof(float), *loop.initial);
      loop.body(loop, memory.data());
    }
  }
};

}  // namespace twenty_ops
