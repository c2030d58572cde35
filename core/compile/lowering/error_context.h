// Errors of a plugin that name the op and the user's line that they are about.
#pragma once

#include <span>
#include <string>

#include "core/compile/lowering/program.h"
#include "core/host/status.h"
#include "core/host/watchdog.h"

namespace ltc {

// The error as the user reads it: the line first, then the op, then the words of the plugin and its name; with what the graph
// holds where the plugin names no node:
//   "train.py:31: aten::add.Tensor: <message> [opencl]"
//   "train.py:20 to train.py:31: a program of 12 ops: <message> [opencl]"
// `origin`: by node as the plugin counts them, the node of `graph`; empty: they are the same.
std::string error_text(const Error& error, const Graph& graph, std::span<const uint32_t> origin = {});

// Does `work`, a call of the plugin about the graph; what it throws gets that message.
template <typename Work>
auto with_error_context(const Graph& graph, std::span<const uint32_t> origin, Work work) {
  const host::CallLine line(graph.nodes.empty() ? kNoLocation : graph.nodes.front().location);
  try {
    return work();
  } catch (const host::WaitFailed&) {  // nothing is known of the work
    throw;
  } catch (const host::BrokenContract& error) {
    throw host::BrokenContract(error, error_text(error, graph, origin));
  } catch (const Error& error) {
    throw Error(error.code(), error_text(error, graph, origin));
  }
}

template <typename Work>
auto with_error_context(const Step& step, Work work) {
  return with_error_context(step.graph, step.origin, std::move(work));
}

}  // namespace ltc
