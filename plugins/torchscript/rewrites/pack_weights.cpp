#include <c10/util/StringUtil.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/ops/packed_convolutions.h"
#include "torchscript/rewrites/rewrites.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Use;
using torch::jit::Value;

constexpr size_t kWeight = 1, kBias = 2;  // arguments of a convolution

// By form.
constexpr const char* kPacked[] = {"ltc_torchscript::packed_convolution", "ltc_torchscript::packed_winograd_convolution",
                                   "ltc_torchscript::convolution_by_matrix"};

// Weight, bias, mean and variance are arguments 1 to 4 of each.
struct BatchNorm {
  std::string_view op;
  std::optional<size_t> training;
  size_t eps;
};
constexpr BatchNorm kBatchNorms[] = {
    {"aten::native_batch_norm", 5, 7},
    {"aten::_native_batch_norm_legit_functional", 5, 7},
    {"aten::_native_batch_norm_legit_no_training", std::nullopt, 6},
};

class Pack {
 public:
  explicit Pack(Program& program) : program_(program), editor_(program) {
    for (size_t i = 0; i < program.params.size(); ++i) params_.emplace(program.graph->inputs()[i], &program.params[i]);
  }

  void run() {
    std::vector<Node*> convolutions;
    for (Node* node : program_.graph->nodes()) {
      if (is_convolution(*node) && is_weight(*node->input(kWeight)) && is_fixed(*node->input(kBias)))
        convolutions.push_back(node);
    }
    for (Node* node : convolutions) pack(*node);
  }

 private:
  bool is_convolution(const Node& node) const {
    return editor_.is(node, "aten::convolution") || editor_.is(node, "ltc_torchscript::winograd_convolution");
  }

  // A param that no run gives away, or none.
  bool is_fixed(const Value& value) const {
    const auto param = params_.find(&value);
    if (param == params_.end()) return value.mustBeNone();
    return !param->second->is_scalar && !param->second->may_be_donated && param->second->spec.dtype == at::kFloat;
  }

  // One that only convolutions read: a program that makes its gradient belongs to a training step, which changes it.
  bool is_weight(const Value& value) const {
    return is_fixed(value) && !value.mustBeNone() &&
           std::ranges::all_of(value.uses(), [&](const Use& use) { return use.offset == kWeight && is_convolution(*use.user); });
  }

  // The batch norm by fixed statistics that alone reads the results.
  Node* batch_norm_behind(const Node& convolution, const BatchNorm*& row) const {
    const auto& uses = convolution.output()->uses();
    if (uses.size() != 1 || uses[0].offset != 0) return nullptr;
    Node* const node = uses[0].user;
    row = std::ranges::find_if(kBatchNorms, [&](const BatchNorm& each) { return editor_.is(*node, each.op); });
    if (row == std::end(kBatchNorms)) return nullptr;
    const auto training = row->training ? torch::jit::toIValue(node->input(*row->training)) : std::optional(c10::IValue(false));
    const auto eps = torch::jit::toIValue(node->input(row->eps));
    if (!training || !training->isBool() || training->toBool() || !eps || !eps->isDouble()) return nullptr;
    for (size_t i = 1; i < node->outputs().size(); ++i) {
      if (node->output(i)->hasUses()) return nullptr;
    }
    const bool fixed = is_fixed(*node->input(1)) && is_fixed(*node->input(2)) && is_fixed(*node->input(3)) &&
                       is_fixed(*node->input(4)) && !node->input(3)->mustBeNone() && !node->input(4)->mustBeNone();
    return fixed ? node : nullptr;
  }

  void pack(Node& convolution) {
    const auto form = weight_form_for(convolution);
    if (!form) return;
    const BatchNorm* row = nullptr;
    Node* const norm = batch_norm_behind(convolution, row);
    Node& last = norm ? *norm : convolution;
    const torch::jit::WithInsertPoint before(&last);
    const auto number = static_cast<int64_t>(*form);
    Value* const none = editor_.constant(c10::IValue());
    std::vector<Value*> inputs = {convolution.input(kWeight), convolution.input(kBias)};
    for (size_t i = 1; i <= 4; ++i) inputs.push_back(norm ? norm->input(i) : none);
    inputs.push_back(norm ? norm->input(row->eps) : editor_.constant(0.0));
    inputs.push_back(editor_.constant(spec_of(*convolution.input(0)).sizes));
    for (const size_t i : {3, 4, 5, 8}) inputs.push_back(convolution.input(i));
    inputs.push_back(editor_.constant(number));
    const TensorSpec weight = spec_of(*convolution.input(kWeight));
    Node& packed = packed_once(std::move(inputs),
                               {{at::kFloat, packed_sizes(*form, convolution)}, {at::kFloat, {weight.sizes[0]}}}, convolution);
    Value* const window = editor_.constant(std::vector<int64_t>{weight.sizes[2], weight.sizes[3]});
    const Value& result = *convolution.output();
    Value* const by = editor_.call({kPacked[number], ""},
                                   {convolution.input(0), packed.output(0), packed.output(1), window, convolution.input(3),
                                    convolution.input(4), convolution.input(5), convolution.input(8)},
                                   spec_of(result).sizes, result);
    editor_.replace(last, *by);
  }

  // Convolutions with the same weight share its form.
  Node& packed_once(std::vector<Value*> inputs, const std::vector<TensorSpec>& results, const Node& like) {
    std::vector<std::string> key;
    for (const Value* input : inputs) {
      const auto constant = torch::jit::toIValue(input);
      key.push_back(constant ? c10::str(*constant) : input->debugName());
    }
    Node*& known = packed_[key];
    if (!known) known = &editor_.call({"ltc_torchscript::pack_convolution", ""}, inputs, results, like);
    return *known;
  }

  Program& program_;
  GraphEditor editor_;
  std::unordered_map<const Value*, const Program::Param*> params_;
  std::map<std::vector<std::string>, Node*> packed_;
};

}  // namespace

void pack_weights(Program& program) { Pack(program).run(); }

}  // namespace ltc::torchscript
