// Helper for plugins in C++20: readers of the graphs that the host sends, and the table of the ops that a plugin computes.
#pragma once
#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ltc/opset.h"
#include "ltc/plugin.hpp"

namespace ltc::plugin {

class Node;

// A graph of the host's, for as long as that lives.
class Graph {
 public:
  explicit Graph(const ltc_graph& graph) : abi(graph), is_scalar_(graph.value_count) {
    for (const ltc_param* param : params()) {
      is_scalar_[param->value] = (param->flags & LTC_PARAM_SCALAR) != 0;
      knows_flags_ = knows_flags_ && (param->flags & ~uint32_t{LTC_PARAM_SCALAR}) == 0;
    }
  }
  std::span<const ltc_param* const> params() const { return {abi.params, abi.param_count}; }
  std::span<const uint32_t> outputs() const { return {abi.outputs, abi.output_count}; }
  size_t size() const { return abi.node_count; }
  Node node(size_t index) const;
  const ltc_type& type(uint32_t value) const { return *abi.types[value]; }
  // Whether the value is passed to a run by value.
  bool is_scalar(uint32_t value) const { return is_scalar_[value]; }
  // Claim nothing of a graph whose params have flags that are not known.
  bool knows_flags() const { return knows_flags_; }

  const ltc_graph& abi;

 private:
  std::vector<bool> is_scalar_;
  bool knows_flags_ = true;
};

// A node of a graph.
class Node {
 public:
  Node(const Graph& in, size_t at) : graph(in), index(static_cast<uint32_t>(at)), abi(*in.abi.nodes[at]) {}
  std::string_view name() const { return view(abi.name); }
  std::span<const uint32_t> inputs() const { return {abi.inputs, abi.input_count}; }
  std::span<const uint32_t> outputs() const { return {abi.outputs, abi.output_count}; }
  bool has_input(size_t i) const { return i < abi.input_count && abi.inputs[i] != LTC_NONE; }
  // The type of an input or output that is there.
  const ltc_type& input(size_t i) const { return graph.type(abi.inputs[i]); }
  const ltc_type& output(size_t i) const { return graph.type(abi.outputs[i]); }

  // The attribute of that name, or nothing where it is absent, None, or of another kind. T: int64_t, bool, ltc_dtype, double (of
  // any number), std::string_view, and std::span of const int64_t, double or ltc_string.
  template <typename T>
  std::optional<T> find(std::string_view name) const {
    const ltc_attr* attr = ltc_find_attr(&abi, name.data(), name.size(), "");
    return attr ? read<T>(*attr) : std::nullopt;
  }
  template <typename T>
  T get(std::string_view name, T otherwise) const {
    return find<T>(name).value_or(otherwise);
  }
  // Throws UNSUPPORTED, with this node to blame.
  template <typename T>
  T get(std::string_view name) const {
    if (const auto value = find<T>(name)) return *value;
    throw failure("has no attribute '" + std::string(name) + "' of the kind that is needed");
  }
  Failure failure(const std::string& why, ltc_code code = LTC_UNSUPPORTED) const {
    return Failure(code, std::string(name()) + " " + why, index);
  }

  const Graph& graph;
  const uint32_t index;
  const ltc_node& abi;

 private:
  template <typename T>
  static std::optional<T> read(const ltc_attr& attr) {
    const ltc_attr_kind kind = attr.kind;
    if constexpr (std::is_same_v<T, bool>) {
      if (kind == LTC_ATTR_BOOL) return attr.value.ints[0] != 0;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      if (kind == LTC_ATTR_INT) return attr.value.ints[0];
    } else if constexpr (std::is_same_v<T, ltc_dtype>) {
      if (kind == LTC_ATTR_DTYPE) return static_cast<ltc_dtype>(attr.value.ints[0]);
    } else if constexpr (std::is_same_v<T, double>) {
      if (kind == LTC_ATTR_FLOAT) return attr.value.floats[0];
      if (kind == LTC_ATTR_INT || kind == LTC_ATTR_BOOL) return static_cast<double>(attr.value.ints[0]);
    } else if constexpr (std::is_same_v<T, std::string_view>) {
      if (kind == LTC_ATTR_STRING) return view(attr.value.strings[0]);
    } else if constexpr (std::is_same_v<T, std::span<const int64_t>>) {
      if (kind == LTC_ATTR_INTS) return T(attr.value.ints, attr.count);
    } else if constexpr (std::is_same_v<T, std::span<const double>>) {
      if (kind == LTC_ATTR_FLOATS) return T(attr.value.floats, attr.count);
    } else {
      static_assert(std::is_same_v<T, std::span<const ltc_string>>, "attributes have no such type");
      if (kind == LTC_ATTR_STRINGS) return T(attr.value.strings, attr.count);
    }
    return std::nullopt;
  }
};

inline Node Graph::node(size_t index) const { return Node(*this, index); }

// For event_good_outputs: by output of the graph, 1 where it depends on none of the nodes that `may_fail` marks.
inline std::vector<uint8_t> unaffected_outputs(const Graph& graph, const std::vector<bool>& may_fail) {
  std::vector<uint8_t> good(graph.abi.value_count, 1);  // by value
  for (size_t i = 0; i < graph.size(); ++i) {
    const Node node = graph.node(i);
    const auto is_bad = [&](uint32_t value) { return value != LTC_NONE && !good[value]; };
    if (!may_fail[i] && std::none_of(node.inputs().begin(), node.inputs().end(), is_bad)) continue;
    for (const uint32_t value : node.outputs()) {
      if (value != LTC_NONE) good[value] = 0;
    }
  }
  std::vector<uint8_t> outputs;
  for (const uint32_t value : graph.outputs()) outputs.push_back(good[value]);
  return outputs;
}

// Whether the operands and results of a node have the dtypes that letters state: operands, a colon, results, as in "TT:b".
//   T  all of one dtype that the op computes     A  any such dtype     b  BOOL     i  I64     c  C64
//   N  a T, or a scalar param of any such dtype
//   s  a scalar param, not there where the number is an attribute      -  absent   +  as many Ts as there are
// No other letter takes a scalar param. A result that nobody wants fits each letter. `computes`: the dtypes of the op.
template <std::predicate<ltc_dtype> Computes>
bool matches_types(const Node& node, std::string_view types, const Computes& computes) {
  ltc_dtype shared = 0;
  const auto fits = [&](char letter, uint32_t value) {
    if (letter == '-') return value == LTC_NONE;
    if (value == LTC_NONE) return false;
    const ltc_dtype dtype = node.graph.type(value).dtype;
    if (node.graph.is_scalar(value)) return letter == 'N' && computes(dtype);
    if (letter == 'b') return dtype == LTC_BOOL;
    if (letter == 'i') return dtype == LTC_I64;
    if (letter == 'c') return dtype == LTC_C64;
    if (letter != 'A' && shared == 0) shared = dtype;
    return (letter == 'A' || dtype == shared) && computes(dtype);
  };
  const std::span<const uint32_t> inputs = node.inputs(), outputs = node.outputs();
  const size_t colon = types.find(':');
  size_t next = 0;
  for (const char letter : types.substr(0, colon)) {
    if (letter == 's') {
      next += next < inputs.size() && inputs[next] != LTC_NONE && node.graph.is_scalar(inputs[next]);
    } else if (letter == '+') {
      for (; next < inputs.size(); ++next) {
        if (!fits('T', inputs[next])) return false;
      }
    } else if (!fits(letter, next < inputs.size() ? inputs[next++] : LTC_NONE)) {
      return false;
    }
  }
  if (next != inputs.size() || types.size() - colon - 1 != outputs.size()) return false;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != LTC_NONE && !fits(types[colon + 1 + i], outputs[i])) return false;
  }
  return true;
}

// Whether the node has the usual form of its op: no factor alpha but 1, inputs of cat with the rank of the result (an empty
// vector joins anything), and at least one dim where gather, scatter and flip name one. A plugin without code for the other forms
// leaves them alone.
inline bool has_usual_form(const Node& node) {
  if (ltc_find_attr(&node.abi, "alpha", 5, "") && node.get<double>("alpha", 0) != 1) return false;
  const auto all_ranks = [&](auto&& fit) {
    const auto fits = [&](uint32_t value) { return value != LTC_NONE && fit(node.graph.type(value).rank); };
    return std::all_of(node.inputs().begin(), node.inputs().end(), fits);
  };
  if (node.name() == "aten::cat") return all_ranks([&](uint32_t rank) { return rank == node.output(0).rank; });
  for (const char* naming_a_dim : {"aten::gather", "aten::scatter.src", "aten::scatter_add", "aten::flip"}) {
    if (node.name() == naming_a_dim) return all_ranks([](uint32_t rank) { return rank > 0; });
  }
  return true;
}

// A row of the table of ops.
template <typename Handler>
struct OpRow {
  const char* name;  // "aten::add.Tensor"
  Handler handler;
  bool (*takes)(const Node&) = nullptr;  // whether this form of the op can be computed; nullptr: every one
  const char* operands = nullptr;        // of an op without id, for ltc_node_matches
};

// The ops that a plugin computes, one row per name.
template <typename Handler>
class OpTable {
 public:
  OpTable(std::initializer_list<OpRow<Handler>> rows) {
    for (const OpRow<Handler>& row : rows) rows_.emplace(row.name, row);
  }

  // The row that computes the node; null where none does.
  const OpRow<Handler>* find(const Node& node) const {
    const auto found = rows_.find(node.name());
    if (found == rows_.end() || !node.graph.knows_flags()) return nullptr;
    const OpRow<Handler>& row = found->second;
    const char* operands = node.abi.op ? ltc_op_operands(node.abi.op) : row.operands;
    return ltc_node_matches(&node.abi, operands) && (!row.takes || row.takes(node)) ? &row : nullptr;
  }
  // The row of that name, whatever form it takes; null where there is none.
  const OpRow<Handler>* named(std::string_view name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : &found->second;
  }
  // Throws UNSUPPORTED, with the node to blame.
  const OpRow<Handler>& at(const Node& node) const {
    if (const OpRow<Handler>* row = find(node)) return *row;
    throw node.failure("is not in the table of ops in this form");
  }
  // The slot `claims`, each node for itself.
  void claim(const ltc_graph& graph, uint32_t* cluster) const {
    const Graph reader(graph);
    for (size_t i = 0; i < reader.size(); ++i) cluster[i] = find(reader.node(i)) ? 1 : 0;
  }

 private:
  std::unordered_map<std::string_view, OpRow<Handler>> rows_;
};

}  // namespace ltc::plugin
