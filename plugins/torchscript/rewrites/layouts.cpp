#include "torchscript/rewrites/layouts.h"

#include <ATen/core/enum_tag.h>
#include <c10/core/MemoryFormat.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <unordered_set>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/ops/convolutions.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr auto kRowMajor = at::MemoryFormat::Contiguous, kChannelsLast = at::MemoryFormat::ChannelsLast;

// Below this many results per channel the conversion of the weight weighs more than what is gained, and below this many
// multiplications that of the images.
constexpr int64_t kLeastPixels = 1024;
constexpr int64_t kLeastWork = 1 << 18;

constexpr size_t kAlways = SIZE_MAX;

// An operator of images. Positions are those of its schema's arguments and results.
struct ImageOp {
  const char* name;
  size_t image;                  // what decides: it lies channels-last already, or this is a convolution or kAlways
  std::vector<size_t> operands;  // those that have to lie likewise
  std::vector<size_t> results;   // those that come so
  std::optional<size_t> weight;  // of a convolution: what it multiplies with
};

const std::vector<ImageOp>& image_ops() {
  static const std::vector<ImageOp> rows = {
      {"aten::convolution", 0, {0, 1}, {0}, 1},
      {"aten::convolution_backward", 1, {0, 1, 2}, {0}, 2},
      {"aten::native_batch_norm", 0, {}, {0}, {}},
      {"aten::_native_batch_norm_legit_functional", 0, {}, {0}, {}},
      {"aten::_native_batch_norm_legit_no_training", 0, {}, {0}, {}},
      {"aten::native_batch_norm_backward", 1, {0}, {0}, {}},
      {"ltc_torchscript::winograd_convolution", kAlways, {0}, {0}, {}},
      {"ltc_torchscript::winograd_convolution_backward", kAlways, {0, 1}, {0}, {}},
      {"ltc_torchscript::max_pool2d_with_indices", 0, {}, {0, 1}, {}},
      {"aten::max_pool2d_with_indices_backward", 1, {0, 7}, {0}, {}},
      {"aten::threshold_backward", 1, {0}, {0}, {}},
      {"aten::avg_pool2d", 0, {}, {0}, {}},
      {"aten::avg_pool2d_backward", 1, {0}, {0}, {}},
      {"aten::_adaptive_avg_pool2d", 0, {}, {0}, {}},
      {"aten::_adaptive_avg_pool2d_backward", 1, {0}, {0}, {}},
  };
  return rows;
}

bool is_image(const TensorSpec& spec) { return spec.dtype == at::kFloat && spec.sizes.size() == 4; }

class LayoutChoice {
 public:
  explicit LayoutChoice(Program& program) : program_(program) {}

  void run() {
    std::vector<Node*> wide;
    for (Node* node : program_.graph->nodes()) {
      const auto origin = program_.origins.find(node);
      if (origin == program_.origins.end()) continue;
      const std::string name = node->kind().toQualString();
      const auto row = std::ranges::find(image_ops(), name, &ImageOp::name);
      if (row == image_ops().end()) {
        if (keeps_layout(*node, origin->second)) images_.insert(node->output());
      } else if (is_of_images(*node, *row)) {
        convert(*node, *row, origin->second.node);
        if (row->weight && row->image == 1 && has_wide_window(spec_of(*node->input(*row->weight)).sizes)) wide.push_back(node);
      } else if (row->weight && !images_.empty()) {
        restore(*node, *row, origin->second.node);
      }
    }
    for (Node* node : wide) GraphEditor(program_).rename(*node, {"ltc_torchscript::wide_convolution_backward", ""});
  }

 private:
  bool is_of_images(const Node& node, const ImageOp& row) const {
    if (row.weight) return is_large_convolution(node, row);
    return row.image == kAlways || images_.contains(node.input(row.image));
  }

  // An element-wise operator whose operands of the result's size all are images.
  bool keeps_layout(const Node& node, const Origin& origin) const {
    if (node.outputs().size() != 1 || !is_image(spec_of(*node.output())) || !origin.op.hasTag(at::Tag::pointwise)) return false;
    const auto sizes = spec_of(*node.output()).sizes;
    return std::ranges::any_of(node.inputs(), [&](const Value* input) { return images_.contains(input); }) &&
           std::ranges::all_of(node.inputs(),
                               [&](const Value* input) { return images_.contains(input) || spec_of(*input).sizes != sizes; });
  }

  static bool is_large_convolution(const Node& node, const ImageOp& row) {
    const TensorSpec weight = spec_of(*node.input(*row.weight)), image = spec_of(*node.input(row.image));
    if (!is_image(weight) || !is_image(image)) return false;
    const auto transposed = torch::jit::toIValue(node.input(*row.weight + 5));
    if (!transposed || transposed->toBool()) return false;
    // Backward, what is as large as the result is its gradient.
    const auto& result = row.image == 0 ? spec_of(*node.output(0)).sizes : spec_of(*node.input(0)).sizes;
    if (result.size() != 4) return false;
    if (pads_more_than_window(node, row, weight.sizes)) return false;
    if (row.image == 0 && is_faster_row_major(weight.sizes)) return false;
    const int64_t pixels = result[0] * result[2] * result[3];
    return pixels >= kLeastPixels && pixels * c10::multiply_integers(weight.sizes) >= kLeastWork;
  }

  // Where windows lie beside the images altogether, oneDNN has slow kernels only, and the slowest for channels-last images.
  static bool pads_more_than_window(const Node& node, const ImageOp& row, at::IntArrayRef weight) {
    const auto padding = constant_ints(*node.input(*row.weight + 3)), dilation = constant_ints(*node.input(*row.weight + 4));
    if (!padding || !dilation || padding->size() != 2 || dilation->size() != 2) return true;
    return (*padding)[0] > (weight[2] - 1) * (*dilation)[0] || (*padding)[1] > (weight[3] - 1) * (*dilation)[1];
  }

  void convert(Node& node, const ImageOp& row, uint32_t blamed) {
    for (const size_t i : row.operands) {
      if (!images_.contains(node.input(i))) node.replaceInput(i, converted(*node.input(i), kChannelsLast, node, blamed));
      images_.insert(node.input(i));
    }
    for (const size_t i : row.results) images_.insert(node.output(i));
  }

  // A small convolution is faster row-major, and would be neither with one operand of each kind.
  void restore(Node& node, const ImageOp& row, uint32_t blamed) {
    for (const size_t i : row.operands) {
      if (i != *row.weight) node.replaceInput(i, converted(*node.input(i), kRowMajor, node, blamed));
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
