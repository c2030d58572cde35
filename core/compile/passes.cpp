#include "core/compile/passes.h"

#include "core/base/log.h"
#include "core/ir/text.h"
#include "core/ir/verify.h"

namespace ltc {
namespace {

#ifdef NDEBUG
constexpr bool kVerify = false;
#else
constexpr bool kVerify = true;
#endif

void run_pass(const Pass& pass, Graph& graph) {
  const bool traced = log::enabled(log::Level::kTrace);
  const Graph before = traced ? graph : Graph();
  pass.run(graph);
  if (kVerify) verify(graph, pass.name);
  if (traced && !same(before, graph)) log::at(log::Level::kTrace, "after ", pass.name, ": ", print(graph));
}

}  // namespace

void run_passes(Graph& graph) {
  if (kVerify) verify(graph, "recording");
  for (const Pass& pass : kPasses) run_pass(pass, graph);
}

}  // namespace ltc
