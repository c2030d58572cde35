// Helpers of the passes over a program's graph.
#pragma once
#include <functional>
#include <string_view>

#include "torchscript/graph/program.h"

namespace ltc::torchscript {

using Values = std::vector<torch::jit::Value*>;

// Changes the graph and keeps program.origins.
class GraphEditor {
 public:
  explicit GraphEditor(Program& program) : program_(program) {}

  // False for symbolic nodes, which no rewrite changes.
  bool is(const torch::jit::Node& node, std::string_view name, std::string_view overload = {}) const;

  // Another form of the same row-major contents.
  bool is_reshape(const torch::jit::Node& node) const;

  // A node where the graph's insertion point is. A failure there names the node of `like`, whose dtype the result has.
  torch::jit::Value* call(const c10::OperatorName& name, c10::ArrayRef<torch::jit::Value*> inputs, std::vector<int64_t> sizes,
                          const torch::jit::Value& like);
  // The same of several results.
  torch::jit::Node& call(const c10::OperatorName& name, c10::ArrayRef<torch::jit::Value*> inputs,
                         c10::ArrayRef<TensorSpec> results, const torch::jit::Node& like);
  torch::jit::Value* constant(const c10::IValue& value) { return program_.graph->insertConstant(value); }
  torch::jit::Value* list(c10::ArrayRef<torch::jit::Value*> tensors);

  // The node goes, with all that only it needed. Only its first result is read.
  void replace(torch::jit::Node& node, torch::jit::Value& by);

  // The node becomes one of an operator with the same arguments and results.
  void rename(torch::jit::Node& node, const c10::OperatorName& name);

  // a + b, both of the result's size.
  bool is_sum(const torch::jit::Node& node) const;
  // Whether a sum is only added to others.
  using IsTerm = std::function<bool(const torch::jit::Value&)>;
  // The sums that are no terms.
  std::vector<torch::jit::Node*> whole_sums(const IsTerm& is_term) const;
  // The terms of a sum, in the order in which it is written. A nested sum that `is_term` is replaced by its own terms. Nothing if
  // there are too many.
  Values terms_of(torch::jit::Node& sum, const IsTerm& is_term) const;

 private:
  Program& program_;
};

// The integers of a constant list; nothing else has any.
std::optional<std::vector<int64_t>> constant_ints(const torch::jit::Value& value);
std::optional<int64_t> constant_int(const torch::jit::Value& value);
// Whether it is a constant number of that value.
bool is_one(const torch::jit::Value& value);

}  // namespace ltc::torchscript
