// A graph as the generator works on it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/graph/index.h"
#include "kernels/graph/op_table.h"
#include "ltc/plugin.h"

namespace ltc::kernels {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = LTC_NONE;

struct Value {
  ltc_dtype dtype;
  Sizes sizes;
  int64_t count;
  NodeId producer = kNone;  // none: a param
};

// The numbers of an attribute: ints, or floats where it was given as such.
struct Attr {
  std::string name;
  ltc_attr_kind kind;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

struct Node {
  const OpRow* op;
  Kind kind;
  std::vector<ValueId> in, out;  // kNone: absent, not wanted
  std::vector<Attr> attrs;
  uint32_t source;                  // index of the node in the graph of the ABI
  std::vector<uint32_t> also = {};  // of further ones that it computes

  const Attr* find(std::string_view name) const;  // null: not given, or None
  int64_t integer(std::string_view name, int64_t otherwise) const;
  const std::vector<int64_t>& integers(std::string_view name) const;  // empty where not given
};

struct Param {
  ValueId value;
  bool scalar;
  uint32_t alias_output = kNone;  // the output that it may become, see ltc_param
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;  // operands before users
  std::vector<Param> params;
  std::vector<ValueId> outputs;

  ValueId add_value(ltc_dtype dtype, Sizes sizes);
  void append(Node node);  // whose results are values of the graph
  // A node of one result; returns that.
  ValueId add_node(Kind kind, std::vector<ValueId> in, std::vector<Attr> attrs, ltc_dtype dtype, Sizes sizes, uint32_t source);
  bool is_scalar_param(ValueId value) const;
};

std::string op_name(const Node& node);
// "f32[2,3]".
std::string type_text(const Value& value);

}  // namespace ltc::kernels
