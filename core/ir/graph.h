// The graph that passes rewrite and plugins lower: values in single assignment, nodes in an order in which operands precede
// users.
//
// A value is defined once, by a param or as an output of a node. Invariants: verify.h. Text form: text.h.
// Copyable; one thread at a time.
#pragma once

#include <span>
#include <vector>

#include "core/ir/location.h"
#include "core/ir/op.h"
#include "core/ir/type.h"

namespace ltc {

using ValueId = uint32_t;
inline constexpr ValueId kNone = UINT32_MAX;  // an argument that was not given, a result that is not wanted

struct Node {
  OpId op;
  AttrsId attrs = kNoAttrs;
  std::vector<ValueId> inputs;   // the tensor and number operands in schema order
  std::vector<ValueId> outputs;  // kNone where nothing reads the result
  LocationId location = kNoLocation;
};

struct Param {
  ValueId value;
  bool scalar = false;            // by value at each run, type of rank 0
  uint32_t alias_output = kNone;  // index of the output that may take over this param's buffer
};

struct Graph {
  std::vector<TypeId> types;  // by value id
  std::vector<Param> params;
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;  // distinct, none a param

  ValueId add_value(TypeId type) {
    types.push_back(type);
    return static_cast<ValueId>(types.size() - 1);
  }
  ValueId add_param(TypeId type, bool scalar = false) {
    params.push_back({add_value(type), scalar});
    return params.back().value;
  }
  // Appends a node with one output.
  ValueId add_node(std::string_view op, std::vector<ValueId> inputs, TypeId type, const AttrList& attrs = {}) {
    const ValueId out = add_value(type);
    nodes.push_back({intern_op(op), intern_attrs(attrs), std::move(inputs), {out}});
    return out;
  }
  // Throws Error(kInternal) for kNone and for values that the graph lacks.
  const Type& type(ValueId value) const {
    if (value >= types.size()) [[unlikely]]
      fail_without_value(value);
    return type_of(types[value]);
  }

 private:
  [[noreturn]] void fail_without_value(ValueId value) const;
};

// Whether the two are one graph up to the numbering of values: equal params, nodes in equal order, types and outputs. Locations
// do not count.
bool same(const Graph& a, const Graph& b);

}  // namespace ltc
