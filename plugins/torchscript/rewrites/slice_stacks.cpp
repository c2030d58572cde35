#include "torchscript/graph/graph_editor.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

class Slices {
 public:
  explicit Slices(Program& program) : program_(program), editor_(program) {}

  void run() {
    std::vector<Node*> slices;
    for (Node* node : program_.graph->nodes()) {
      if (editor_.is(*node, "aten::slice", "Tensor") && editor_.is_reshape(*node->input(0)->node())) slices.push_back(node);
    }
    for (Node* slice : slices) turn(*slice);
  }

 private:
  void turn(Node& slice) {
    Node& reshape = *slice.input(0)->node();
    Value& stack = *reshape.input(0);
    const auto begin = constant_int(*slice.input(2));
    if (constant_int(*slice.input(1)) != 0 || constant_int(*slice.input(4)) != 1 || !begin || *begin < 0) return;
    std::vector<int64_t> sizes = spec_of(stack).sizes;
    const auto reshaped = spec_of(*reshape.output()).sizes, part = spec_of(*slice.output()).sizes;
    if (sizes.empty() || c10::multiply_integers(part) == 0) return;
    const int64_t row = c10::multiply_integers(reshaped) / reshaped[0], each = c10::multiply_integers(sizes) / sizes[0];
    const int64_t first = *begin * row, count = part[0] * row;  // elements
    if (first % each != 0 || count % each != 0) return;
    sizes[0] = count / each;
    const torch::jit::WithInsertPoint before(&slice);
    Value* const of_stack = editor_.call({"aten::slice", "Tensor"},
                                         {&stack, editor_.constant(0), editor_.constant(first / each),
                                          editor_.constant((first + count) / each), editor_.constant(1)},
                                         sizes, *slice.output());
    editor_.replace(slice,
                    *editor_.call({"ltc_torchscript::reshape", ""}, {of_stack, editor_.constant(part)}, part, *slice.output()));
  }

  Program& program_;
  GraphEditor editor_;
};

}  // namespace

void slice_stacks(Program& program) { Slices(program).run(); }

}  // namespace ltc::torchscript
