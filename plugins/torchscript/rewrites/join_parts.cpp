#include <algorithm>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

// The rows from begin to end of a dim; all others are zero.
struct Part {
  Value* value;
  int64_t begin, end;
  bool is_selected;  // lacks the dim
};

class PartsJoin {
 public:
  explicit PartsJoin(Program& program) : editor_(program) {}

  void run() {
    for (Node* root : editor_.whole_sums(is_term_)) join(*root);
  }

 private:
  // Whether one sum reads the value, and nothing else does.
  bool is_term(const Value& value) const { return value.uses().size() == 1 && editor_.is_sum(*value.uses()[0].user); }

  void join(Node& root) {
    std::vector<Part> parts;
    std::optional<int64_t> dim;
    for (Value* term : editor_.terms_of(root, is_term_)) {
      const auto part = part_of(*term->node(), dim);
      if (!part) return;
      parts.push_back(*part);
    }
    std::ranges::sort(parts, {}, &Part::begin);
    int64_t end = 0;
    for (const Part& part : parts) {
      if (part.begin != end) return;
      end = part.end;
    }
    if (dim && end == spec_of(*root.output()).sizes[static_cast<size_t>(*dim)]) replace(root, parts, *dim);
  }

  // Null if the node makes none, or of another dim than those before.
  std::optional<Part> part_of(const Node& node, std::optional<int64_t>& dim) const {
    const bool selects = editor_.is(node, "aten::select_backward");
    if (!selects && !editor_.is(node, "aten::slice_backward")) return std::nullopt;
    const auto own_dim = constant_int(*node.input(2)), begin = constant_int(*node.input(3));
    if (!own_dim || *own_dim < 0 || !begin || *begin < 0 || own_dim != dim.value_or(*own_dim)) return std::nullopt;
    dim = own_dim;
    Value* const value = const_cast<Value*>(node.input(0));
    if (selects) return Part{value, *begin, *begin + 1, true};
    const auto& sizes = spec_of(*value).sizes;
    if (constant_int(*node.input(5)) != 1 || sizes.size() <= static_cast<size_t>(*dim)) return std::nullopt;
    return Part{value, *begin, *begin + sizes[static_cast<size_t>(*dim)], false};
  }

  // A reader of the sum in another order of dims gets it so.
  void replace(Node& root, const std::vector<Part>& parts, int64_t dim) {
    const auto& uses = root.output()->uses();
    Node* const user = uses.size() == 1 && editor_.is(*uses[0].user, "aten::permute") ? uses[0].user : nullptr;
    auto order = user ? constant_ints(*user->input(1)) : std::nullopt;
    if (order && std::ranges::any_of(*order, [](int64_t from) { return from < 0; })) order.reset();
    Node& replaced = order ? *user : root;
    const Value& like = *root.output();
    const torch::jit::WithInsertPoint before(&root);
    Values rows;
    for (const Part& part : parts) rows.push_back(arranged(part, dim, order, like));
    const int64_t place = order ? std::ranges::find(*order, dim) - order->begin() : dim;
    const auto sizes = spec_of(*replaced.output()).sizes;
    Value* const joined = editor_.call({"aten::cat", ""}, {editor_.list(rows), editor_.constant(place)}, sizes, like);
    // A sum with zeros has no negative ones.
    Value* const sum = editor_.call({"aten::add", "Scalar"}, {joined, editor_.constant(0), editor_.constant(1)}, sizes, like);
    editor_.replace(replaced, *sum);
  }

  Value* arranged(const Part& part, int64_t dim, const std::optional<std::vector<int64_t>>& order, const Value& like) {
    Value* value = part.value;
    std::vector<int64_t> sizes = spec_of(*value).sizes;
    if (part.is_selected) {
      sizes.insert(sizes.begin() + dim, 1);
      value = editor_.call({"aten::unsqueeze", ""}, {value, editor_.constant(dim)}, sizes, like);
    }
    if (!order) return value;
    std::vector<int64_t> permuted;
    for (const int64_t from : *order) permuted.push_back(sizes[static_cast<size_t>(from)]);
    return editor_.call({"aten::permute", ""}, {value, editor_.constant(*order)}, permuted, like);
  }

  GraphEditor editor_;
  const GraphEditor::IsTerm is_term_ = [this](const Value& value) { return is_term(value); };
};

}  // namespace

void join_parts(Program& program) { PartsJoin(program).run(); }

}  // namespace ltc::torchscript
