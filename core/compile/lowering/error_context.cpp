#include "core/compile/lowering/error_context.h"

namespace ltc {
namespace {

const Node* node_of_error(const Error& error, const Graph& graph, std::span<const uint32_t> origin) {
  if (graph.nodes.size() == 1) return &graph.nodes[0];
  const auto* about_node = dynamic_cast<const host::NodeError*>(&error);
  if (!about_node) return nullptr;
  uint32_t node = about_node->node();
  if (!origin.empty()) node = node < origin.size() ? origin[node] : kNone;
  return node < graph.nodes.size() ? &graph.nodes[node] : nullptr;
}

// The locations of the first and the last node that have one.
std::string range_text(const Graph& graph) {
  std::string first, last;
  for (const Node& node : graph.nodes) {
    std::string text = location_text(node.location);
    if (text.empty()) continue;
    if (first.empty()) first = text;
    last = std::move(text);
  }
  return first == last ? first : cat(first, " to ", last);
}

std::string said(const Error& error) {
  const auto* answer = dynamic_cast<const host::PluginError*>(&error);
  return answer ? cat(answer->said(), " [", answer->plugin(), "]") : error.what();
}

}  // namespace

std::string error_text(const Error& error, const Graph& graph, std::span<const uint32_t> origin) {
  const Node* node = node_of_error(error, graph, origin);
  const std::string location = node ? location_text(node->location) : range_text(graph);
  const std::string about = node ? op_name(node->op) : cat("a program of ", graph.nodes.size(), " ops");
  return cat(location, location.empty() ? "" : ": ", about, ": ", said(error));
}

}  // namespace ltc
