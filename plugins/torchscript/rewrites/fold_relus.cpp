#include <algorithm>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

constexpr const char* kPool = "ltc_torchscript::max_pool2d_with_indices";
constexpr const char* kPoolBackward = "aten::max_pool2d_with_indices_backward";
constexpr size_t kRelu = 6, kIndices = 7;  // arguments of kPool

class Fold {
 public:
  explicit Fold(Program& program) : program_(program), editor_(program) {}

  void run() {
    std::vector<Node*> pools;  // which stay, unlike other nodes
    for (Node* node : program_.graph->nodes()) {
      if (editor_.is(*node, kPool)) pools.push_back(node);
    }
    for (Node* pool : pools) {
      if (editor_.is(*pool->input(0)->node(), "aten::relu")) fold(*pool);
      if (!pool->output(1)->hasUses()) set(*pool, kIndices, false);
    }
  }

 private:
  // How the gradient of one pool goes on: first through the pool, then through the relu.
  struct Backward {
    Node *pool, *relu;
  };

  void fold(Node& pool) {
    Value& activated = *pool.input(0);
    std::vector<Backward> backwards;
    for (const Use& use : activated.uses()) {
      if (use.user == &pool && use.offset == 0) continue;
      const auto backward = backward_of(use, pool);
      if (!backward) return;
      if (std::ranges::find(backwards, backward->pool, &Backward::pool) == backwards.end()) backwards.push_back(*backward);
    }
    set(pool, kRelu, true);
    for (const Backward& backward : backwards) turn(backward, pool);
    editor_.replace(*activated.node(), *activated.node()->input(0));
  }

  // A maximum is its element: where the relu of one is 0, so is its gradient, whichever is computed first, and there are fewer
  // maxima.
  void turn(const Backward& backward, Node& pool) {
    const torch::jit::WithInsertPoint before(backward.pool);
    Value* const gradient = backward.pool->input(0);
    Value* const masked = editor_.call({"aten::threshold_backward", ""}, {gradient, pool.output(0), editor_.constant(0)},
                                       spec_of(*gradient).sizes, *backward.relu->output());
    backward.pool->replaceInput(0, masked);
    editor_.replace(*backward.relu, *backward.pool->output());
  }

  // The use is by the gradient of the pool, or by that of the relu behind it.
  std::optional<Backward> backward_of(const Use& use, const Node& pool) const {
    Node* node = use.user;
    if (editor_.is(*node, "aten::threshold_backward")) node = node->input(0)->node();
    if (!editor_.is(*node, kPoolBackward) || node->input(7) != pool.output(1) || node->input(1) != pool.input(0)) return {};
    const auto& uses = node->output()->uses();
    if (uses.size() != 1 || !editor_.is(*uses[0].user, "aten::threshold_backward")) return {};
    Node* const relu = uses[0].user;
    const auto threshold = constant_int(*relu->input(2));
    if (relu->input(0) != node->output() || relu->input(1) != pool.input(0) || threshold != 0) return {};
    return Backward{node, relu};
  }

  void set(Node& pool, size_t argument, bool value) {
    const torch::jit::WithInsertPoint before(&pool);
    Node* const old = pool.input(argument)->node();
    pool.replaceInput(argument, editor_.constant(value));
    if (!old->hasUses()) old->destroy();
  }

  Program& program_;
  GraphEditor editor_;
};

}  // namespace

void fold_relus(Program& program) { Fold(program).run(); }

}  // namespace ltc::torchscript
