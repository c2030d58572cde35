// The program of this plugin: a torch::jit::Graph, and what its nodes are.
#pragma once
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ltc/plugin.h"
#include "torchscript/graph/symbols.h"

namespace ltc::torchscript {

// The type of a tensor value, by which operands are checked and in-place runs planned.
struct TensorSpec {
  at::ScalarType dtype = at::ScalarType::Undefined;
  std::vector<int64_t> sizes;

  bool matches(const at::Tensor& tensor) const {
    return tensor.scalar_type() == dtype && tensor.sizes() == at::IntArrayRef(sizes);
  }
  bool operator==(const TensorSpec&) const = default;
};
std::string to_string(const TensorSpec& spec);

// A kernel of ours that takes the operands in the order of the schema.
using DirectCall = at::Tensor (*)(const std::vector<c10::IValue>& operands);

// The operator behind a jit node (whose kind has no overload name) and the node of the C graph it came from.
struct Origin {
  c10::OperatorHandle op;
  uint32_t node;
  DirectCall call = nullptr;  // unless it is null, computes the node without the dispatcher (choose_kernels)
};

// An input of a jit graph is a tensor, or the number of a scalar param.
struct Program {
  struct Param {
    bool is_scalar;
    ltc_dtype dtype;
    TensorSpec spec;  // of a tensor
    bool may_be_donated;
  };

  // Nodes that run as one loop over tiles (fusion/clusters.h), or one that runs alone.
  struct Group {
    std::vector<const torch::jit::Node*> nodes;
    bool is_fused;
  };

  c10::Device device = at::kCPU;  // of all its tensors
  Symbols symbols;                // none of a program for one size
  std::shared_ptr<torch::jit::Graph> graph;
  std::vector<Param> params;
  std::unordered_map<const torch::jit::Node*, Origin> origins;
  std::vector<Group> groups;  // all nodes, in an order in which they can run
  bool packs_weights = true;  // rewrites/pack_weights.cpp
};

// The declared type of a tensor value of a program's graph, and how the graph has it.
TensorSpec spec_of(const torch::jit::Value& value);
c10::TypePtr tensor_type(const TensorSpec& spec, c10::Device device = at::kCPU);

// The kind of a node that makes a tensor of a number (ops.h).
torch::jit::Symbol number_kind();
// The number that a `number` node makes a tensor of (ops.h); null for any other value.
const torch::jit::Value* number_source(const torch::jit::Value& value);

}  // namespace ltc::torchscript
