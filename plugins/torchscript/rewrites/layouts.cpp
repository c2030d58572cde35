#include "torchscript/rewrites/layouts.h"

#include <ATen/core/enum_tag.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <unordered_set>

#include "torchscript/graph/op_traits.h"
#include "torchscript/ops/convolutions.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr auto kRowMajor = at::MemoryFormat::Contiguous, kChannelsLast = at::MemoryFormat::ChannelsLast;

bool is_image(const TensorSpec& spec) { return spec.dtype == at::kFloat && spec.sizes.size() == 4; }

class LayoutChoice {
 public:
  explicit LayoutChoice(Program& program) : program_(program) {}

  void run() {
    for (Node* node : program_.graph->nodes()) {
      const auto origin = program_.origins.find(node);
      if (origin == program_.origins.end() || is_symbolic(*node)) continue;
      const std::optional<ImageTraits>& traits = traits_of(node->kind().toQualString()).images;
      if (!traits) {
        if (keeps_layout(*node, origin->second)) images_.insert(node->output());
      } else if (is_of_images(*node, *traits)) {
        convert(*node, *traits, origin->second.node);
      } else if (traits->weight && !images_.empty()) {
        restore(*node, *traits, origin->second.node);
      }
    }
  }

 private:
  bool is_of_images(const Node& node, const ImageTraits& traits) const {
    if (traits.weight) return suits_channels_last(node, traits.image > 0);
    return traits.image == kAlways || images_.contains(node.input(traits.image));
  }

  // An element-wise operator whose operands of the result's size all are images.
  bool keeps_layout(const Node& node, const Origin& origin) const {
    if (node.outputs().size() != 1 || !is_image(spec_of(*node.output())) || !origin.op.hasTag(at::Tag::pointwise)) return false;
    const auto sizes = spec_of(*node.output()).sizes;
    return std::ranges::any_of(node.inputs(), [&](const Value* input) { return images_.contains(input); }) &&
           std::ranges::all_of(node.inputs(),
                               [&](const Value* input) { return images_.contains(input) || spec_of(*input).sizes != sizes; });
  }

  void convert(Node& node, const ImageTraits& traits, uint32_t blamed) {
    for (const size_t i : traits.operands) {
      if (!images_.contains(node.input(i))) node.replaceInput(i, converted(*node.input(i), kChannelsLast, node, blamed));
      images_.insert(node.input(i));
    }
    for (const size_t i : traits.results) images_.insert(node.output(i));
  }

  // A small convolution is faster row-major, and would be neither with one operand of each kind.
  void restore(Node& node, const ImageTraits& traits, uint32_t blamed) {
    for (const size_t i : traits.operands) {
      if (i != *traits.weight) node.replaceInput(i, converted(*node.input(i), kRowMajor, node, blamed));
    }
  }

  Value* converted(Value& value, at::MemoryFormat to, Node& user, uint32_t blamed) {
    Value*& known = converted_[to == kChannelsLast][&value];
    if (known) return known;
    static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("ltc_torchscript::in_format", "");
    const torch::jit::WithInsertPoint before(&user);
    Value* format = program_.graph->insertConstant(static_cast<int64_t>(to));
    Node* node = program_.graph->insertNode(
        program_.graph->create(torch::jit::Symbol::fromQualString("ltc_torchscript::in_format"), {&value, format}));
    known = node->output();
    known->setType(value.type());
    program_.origins.emplace(node, Origin{op, blamed});
    return known;
  }

  Program& program_;
  std::unordered_set<const Value*> images_;                // those that lie channels-last
  std::unordered_map<const Value*, Value*> converted_[2];  // to row-major, to channels-last
};

}  // namespace

void choose_layouts(Program& program) { LayoutChoice(program).run(); }

}  // namespace ltc::torchscript
