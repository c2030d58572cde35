#include "core/compile/passes/passes.h"

#include "core/base/log.h"
#include "core/compile/passes/verify_nodes.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

#ifdef NDEBUG
constexpr bool kIsDebugBuild = false;
#else
constexpr bool kIsDebugBuild = true;
#endif

void run_pass(const Pass& pass, Graph& graph, std::vector<GraphStage>* stages) {
  const bool traced = log::enabled(log::Level::kTrace);
  const Graph before = traced || stages ? graph : Graph();
  pass.run(graph);
  verify_if_asked(graph, pass.name);
  if (!(traced || stages) || same(before, graph)) return;
  if (traced) log::at(log::Level::kTrace, "after ", pass.name, ": ", print(graph));
  if (stages) stages->push_back({pass.name, print(graph)});
}

}  // namespace

void verify_if_asked(const Graph& graph, const char* after) {
  if (kIsDebugBuild || is_verifying()) verify(graph, after);
  if (is_verifying()) verify_nodes(graph, after);
}

void run_passes(Graph& graph, std::vector<GraphStage>* stages) {
  verify_if_asked(graph, "recording");
  for (const Pass& pass : kPasses) run_pass(pass, graph, stages);
}

}  // namespace ltc
