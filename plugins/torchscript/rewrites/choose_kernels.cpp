// Kernels of ours that suit some nodes of an operator and not others. Those that suit all are a column of graph/op_traits.cpp.
#include <algorithm>

#include "torchscript/graph/graph_editor.h"
#include "torchscript/ops/convolutions.h"
#include "torchscript/ops/products.h"
#include "torchscript/ops/rows.h"
#include "torchscript/ops/views.h"
#include "torchscript/ops/winograd.h"
#include "torchscript/rewrites/rewrites.h"
#include "torchscript/threads/threads.h"

namespace ltc::torchscript {
namespace {

using torch::jit::Node;

// The first that suits is taken.
struct Replacement {
  std::string_view op;
  const char* own;
  bool (*suits)(const Node& node);
};
constexpr Replacement kReplacements[] = {
    {"aten::convolution", "ltc_torchscript::winograd_convolution", suits_winograd},
    {"aten::convolution_backward", "ltc_torchscript::winograd_convolution_backward", suits_winograd_backward},
    {"aten::convolution_backward", "ltc_torchscript::wide_convolution_backward", suits_parts_of_window},
};

struct Direct {
  std::string_view op;
  DirectCall call;
  bool (*suits)(const Node& node, const c10::OperatorHandle& op);
};
constexpr auto kAll = [](const Node&, const c10::OperatorHandle&) { return true; };
constexpr Direct kDirect[] = {
    {"aten::mm", mm, kAll},
    {"aten::addmm", addmm, kAll},
    {"aten::embedding", embedding, kAll},
    {"aten::permute", permute, kAll},
    {"ltc_torchscript::reshape", view_of, kAll},
    {"ltc_torchscript::view", view_of, kAll},
    {"aten::convolution", convolve_divided,
     [](const Node& node, const c10::OperatorHandle& op) {
       return !is_symbolic(node) && threads_for(node, op) != Threads::kOne && suits_division(node);
     }},
};

void replace(Program& program) {
  GraphEditor editor(program);
  std::vector<std::pair<Node*, const Replacement*>> chosen;
  for (Node* node : program.graph->nodes()) {
    const auto* const first =
        std::ranges::find_if(kReplacements, [&](const Replacement& row) { return editor.is(*node, row.op) && row.suits(*node); });
    if (first != std::end(kReplacements)) chosen.emplace_back(node, first);
  }
  for (const auto& [node, row] : chosen) editor.rename(*node, {row->own, ""});
}

}  // namespace

uint32_t number_of(DirectCall call) {
  return static_cast<uint32_t>(std::ranges::find(kDirect, call, &Direct::call) - std::begin(kDirect));
}

DirectCall direct_call(uint32_t number) { return number < std::size(kDirect) ? kDirect[number].call : nullptr; }

void choose_kernels(Program& program, bool often) {
  if (!program.device.is_cpu()) return;
  if (often) replace(program);
  for (auto& [node, origin] : program.origins) {
    const c10::OperatorName& name = origin.op.operator_name();
    for (const Direct& row : kDirect) {
      if (name.name == row.op && name.overload_name.empty() && row.suits(*node, origin.op)) origin.call = row.call;
    }
  }
}

}  // namespace ltc::torchscript
