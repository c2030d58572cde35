// From a node of the C graph to an operator of the c10 dispatcher and what each of its schema's arguments is bound to.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "ltc/plugin.h"

namespace ltc::torchscript {

// The value that one schema argument receives.
struct Binding {
  enum Kind {
    kConstant,         // `constant`
    kTensor,           // the value, or the number of a scalar param
    kTensors,          // Tensor[]
    kOptionalTensors,  // Tensor?[], LTC_NONE where an element is absent
    kScalar,           // a scalar param, passed as such
    kFloat,            // a scalar param where the schema wants a float
  };
  Kind kind;
  c10::IValue constant;
  c10::ArrayRef<uint32_t> values;  // borrowed from the node
};

struct BoundNode {
  c10::OperatorHandle op;
  std::vector<Binding> bindings;  // in schema order
};

// Knows the scalar params of one graph and the device that it is for; borrows the graph.
class Binder {
 public:
  Binder(const ltc_graph& graph, c10::Device device);

  // Fails with UNSUPPORTED where the node is not this plugin's business, with INVALID_ARGUMENT where it is malformed.
  BoundNode bind(const ltc_node& node) const;
  bool is_scalar(uint32_t value) const { return scalar_[value]; }
  c10::Device device() const { return device_; }

 private:
  const ltc_graph& graph_;
  const c10::Device device_;
  std::vector<bool> scalar_;  // by value id
};

// "aten::add.Tensor" of this libtorch.
std::optional<c10::OperatorHandle> find_operator(std::string_view name);

bool returns_list(const c10::FunctionSchema& schema);

// Whether the operator changes arguments: its node's outputs are what those hold then, in order, and after them its other
// results.
bool writes(const c10::FunctionSchema& schema);
bool is_written(const c10::Argument& arg);
bool makes_view(const c10::FunctionSchema& schema);

// The operator that does the same in the memory of its first operand: "aten::add_.Tensor" of "aten::add.Tensor".
std::optional<c10::OperatorHandle> in_place_twin(const c10::OperatorHandle& op, c10::Device device);

}  // namespace ltc::torchscript
