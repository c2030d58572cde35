#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <map>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr size_t kLeastProducts = 4;  // worth the copies of their operands
constexpr int64_t kMostRows = 32;     // of a product that gains by being joined with others

// From the `first` input on.
bool same_constants(const Node& a, const Node& b, size_t first) {
  for (size_t i = first; i < a.inputs().size(); ++i) {
    const auto left = torch::jit::toIValue(a.input(i)), right = torch::jit::toIValue(b.input(i));
    if (!left || !right || *left != *right) return false;
  }
  return true;
}

bool is_matrix(const Value& value) {
  const TensorSpec spec = spec_of(value);
  return spec.sizes.size() == 2 && (spec.dtype == at::kFloat || spec.dtype == at::kDouble);
}

int64_t size_of(const Value& value, size_t dim) { return spec_of(value).sizes[dim]; }

class ProductsJoin {
 public:
  explicit ProductsJoin(Program& program) : program_(program), editor_(program) {}

  void run() {
    join_sums();
    join_rows();
  }

 private:
  // ---- sums of products

  void join_sums() {
    std::vector<Node*> roots = editor_.whole_sums(is_term_);
    // Sums of rows can be joined where products have brought the rows together.
    std::ranges::stable_partition(roots, [](const Node* root) { return is_matrix(*root->output()); });
    for (Node* root : roots) join_sum(*root);
  }

  // Whether only sums read the value. A matrix must have one reader: its products would be computed for each.
  bool is_term(const Value& value) const {
    return std::ranges::all_of(value.uses(), [this](const torch::jit::Use& use) { return editor_.is_sum(*use.user); }) &&
           (value.uses().size() == 1 || !is_matrix(value));
  }

  void join_sum(Node& root) {
    Values joined, rest;
    for (Value* term : editor_.terms_of(root, is_term_))
      (is_product(*term) || is_sum_of_rows(*term) ? joined : rest).push_back(term);
    if (joined.size() < kLeastProducts) return;
    std::ranges::sort(joined, [](const Value* a, const Value* b) { return a->node()->isBefore(b->node()); });
    const torch::jit::WithInsertPoint before(&root);
    Value* total = is_matrix(*root.output()) ? product_of(joined, *root.output()) : sum_of_rows_of(joined, *root.output());
    if (!total) return;
    for (Value* term : rest) {
      total = editor_.call({"aten::add", "Tensor"}, {total, term, editor_.constant(1)}, spec_of(*total).sizes, *root.output());
    }
    editor_.replace(root, *total);
  }

  bool is_product(const Value& value) const {
    return editor_.is(*value.node(), "aten::mm") && is_matrix(value) && value.uses().size() == 1;
  }

  bool is_sum_of_rows(const Value& value) const {
    const Node& node = *value.node();
    if (!editor_.is(node, "ltc_torchscript::sum") || spec_of(value).sizes.size() != 1 || !is_matrix(*node.input(0))) return false;
    return constant_ints(*node.input(1)) == std::vector<int64_t>{0} && spec_of(*node.input(0)).dtype == spec_of(value).dtype;
  }

  // Null where copying the operands takes longer than the results that are saved.
  Value* product_of(const Values& products, const Value& result) {
    Values lefts, rights;
    int64_t copied = 0;
    for (Value* product : products) {
      lefts.push_back(product->node()->input(0));
      rights.push_back(product->node()->input(1));
      copied += size_of(*rights.back(), 0);
    }
    const int64_t rows = size_of(result, 0), columns = size_of(result, 1);
    if (copied * (rows + columns) > static_cast<int64_t>(products.size()) * rows * columns) return nullptr;
    return editor_.call({"aten::mm", ""}, {joined(lefts, 1, result), joined(rights, 0, result)}, {rows, columns}, result);
  }

  // Null where the rows are not joined already.
  Value* sum_of_rows_of(const Values& sums, const Value& result) {
    Node& first = *sums[0]->node();
    Values parts;
    for (Value* sum : sums) {
      if (!same_constants(*sum->node(), first, 1)) return nullptr;
      parts.push_back(sum->node()->input(0));
    }
    const auto known = joined_.find({parts, 0});
    if (known == joined_.end()) return nullptr;
    Values inputs(first.inputs().begin(), first.inputs().end());
    inputs[0] = known->second;
    return editor_.call({"ltc_torchscript::sum", ""}, inputs, spec_of(result).sizes, result);
  }

  // ---- products of rows with the same matrix

  void join_rows() {
    std::vector<std::vector<Node*>> groups;
    std::map<std::pair<const Value*, const Value*>, size_t> group_of;  // by what is multiplied with and what is added
    for (Node* node : program_.graph->nodes()) {
      const bool adds = editor_.is(*node, "aten::addmm");
      if (!is_few_rows(*node, adds)) continue;
      const auto key = std::make_pair(node->input(adds + 1), adds ? node->input(0) : nullptr);
      const auto [known, is_new] = group_of.try_emplace(key, groups.size());
      if (is_new) groups.emplace_back();
      std::vector<Node*>& group = groups[known->second];
      if (is_new || (node->input(adds)->node()->isBefore(group[0]) && same_constants(*node, *group[0], adds + 2))) {
        group.push_back(node);
      }
    }
    for (const auto& group : groups) {
      if (group.size() >= kLeastProducts) join(group);
    }
  }

  bool is_few_rows(const Node& node, bool adds) const {
    if (!adds && !editor_.is(node, "aten::mm")) return false;
    return is_matrix(*node.output()) && size_of(*node.output(), 0) <= kMostRows &&
           (!adds || (spec_of(*node.input(0)).sizes.size() == 1 && same_constants(node, node, 3)));
  }

  void join(const std::vector<Node*>& products) {
    Node& first = *products[0];
    const Value& result = *first.output();
    const size_t left = editor_.is(first, "aten::addmm") ? 1 : 0;
    const int64_t columns = size_of(result, 1);
    Values parts, results;
    for (Node* product : products) parts.push_back(product->input(left));
    {
      const torch::jit::WithInsertPoint before(&first);
      Values inputs(first.inputs().begin(), first.inputs().end());
      inputs[left] = joined(parts, 0, result);
      const int64_t rows = size_of(*inputs[left], 0);
      Value* const all = editor_.call(program_.origins.at(&first).op.operator_name(), inputs, {rows, columns}, result);
      for (int64_t begin = 0; const Value* part : parts) {
        const int64_t end = begin + size_of(*part, 0);
        Value* const range[] = {all, editor_.constant(0), editor_.constant(begin), editor_.constant(end), editor_.constant(1)};
        results.push_back(editor_.call({"aten::slice", "Tensor"}, range, {end - begin, columns}, result));
        begin = end;
      }
    }
    for (size_t i = 0; i < products.size(); ++i) editor_.replace(*products[i], *results[i]);
  }

  // ---- operands

  // One behind the other along a dim, there as soon as the last of them is.
  Value* joined(const Values& parts, size_t dim, const Value& like) {
    if (std::ranges::all_of(parts, [this](const Value* part) { return is_transposed(*part); })) {
      Values originals;
      for (Value* part : parts) originals.push_back(part->node()->input(0));
      Value* const original = joined(originals, 1 - dim, like);
      Value* const dims = editor_.constant(std::vector<int64_t>{1, 0});
      return editor_.call({"aten::permute", ""}, {original, dims}, {size_of(*original, 1), size_of(*original, 0)}, like);
    }
    const auto [known, is_new] = joined_.try_emplace({parts, dim}, nullptr);
    if (is_new) {
      const Value* const last =
          *std::ranges::max_element(parts, [](const Value* a, const Value* b) { return a->node()->isBefore(b->node()); });
      const torch::jit::WithInsertPoint behind(last->node()->next());
      std::vector<int64_t> sizes = spec_of(*parts[0]).sizes;
      sizes[dim] = 0;
      for (const Value* part : parts) sizes[dim] += size_of(*part, dim);
      Value* const list = editor_.list(parts);
      known->second = editor_.call({"aten::cat", ""}, {list, editor_.constant(static_cast<int64_t>(dim))}, sizes, like);
    }
    return known->second;
  }

  bool is_transposed(const Value& value) const {
    return editor_.is(*value.node(), "aten::permute") && is_matrix(value) &&
           constant_ints(*value.node()->input(1)) == std::vector<int64_t>{1, 0};
  }

  Program& program_;
  GraphEditor editor_;
  const GraphEditor::IsTerm is_term_ = [this](const Value& value) { return is_term(value); };
  std::map<std::pair<Values, size_t>, Value*> joined_;
};

}  // namespace

void join_products(Program& program) { ProductsJoin(program).run(); }

}  // namespace ltc::torchscript
