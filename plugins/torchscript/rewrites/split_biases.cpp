#include <algorithm>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// Multiplications, and rows, columns or terms: the kernels of smaller products add for nothing (gemm.h).
constexpr int64_t kLeastProduct = 1 << 20;
constexpr int64_t kFew = 8;

class Split {
 public:
  explicit Split(Program& program) : program_(program), editor_(program) {}

  void run() {
    std::vector<Node*> biased;
    for (Node* node : program_.graph->nodes()) {
      if (editor_.is(*node, "aten::addmm") && suits(*node)) biased.push_back(node);
    }
    for (Node* node : biased) split(*node);
  }

 private:
  bool suits(const Node& node) const {
    const TensorSpec bias = spec_of(*node.input(0)), left = spec_of(*node.input(1)), result = spec_of(*node.output());
    if (result.dtype != at::kFloat || bias.dtype != at::kFloat || bias.sizes.size() != 1 || left.sizes.size() != 2) return false;
    const int64_t rows = result.sizes[0], inner = left.sizes[1], columns = result.sizes[1];
    return std::min({rows, inner, columns}) > kFew && rows * inner * columns >= kLeastProduct && is_one(*node.input(3)) &&
           is_one(*node.input(4));
  }

  // The only reader, if it is another form of the same rows.
  Node* form_of_rows(const Value& value) const {
    if (value.uses().size() != 1) return nullptr;
    Node* const user = value.uses()[0].user;
    if (!editor_.is_reshape(*user)) return nullptr;
    const auto sizes = spec_of(*user->output()).sizes;
    return !sizes.empty() && sizes.back() == spec_of(value).sizes.back() ? user : nullptr;
  }

  void split(Node& node) {
    const torch::jit::WithInsertPoint before(&node);
    Value& result = *node.output();
    Value* product = editor_.call({"aten::mm", ""}, {node.input(1), node.input(2)}, spec_of(result).sizes, result);
    Node* const form = form_of_rows(result);
    Node& last = form ? *form : node;
    const auto sizes = spec_of(*last.output()).sizes;
    if (form) {
      product = editor_.call(program_.origins.at(form).op.operator_name(), {product, editor_.constant(sizes)}, sizes, result);
    }
    Value* const sum = editor_.call({"aten::add", "Tensor"}, {product, node.input(0), editor_.constant(1)}, sizes, result);
    editor_.replace(last, *sum);
  }

  Program& program_;
  GraphEditor editor_;
};

}  // namespace

void split_biases(Program& program) { Split(program).run(); }

}  // namespace ltc::torchscript
