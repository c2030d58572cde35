// Errors of a plugin that name the op and the user's line that they are about.
#pragma once

#include <string>

#include "core/host/status.h"
#include "core/ir/graph.h"

namespace ltc {

// The error's message with the op of `graph` that the plugin blames and its place or, where it blames none, with what the graph
// holds: "... (in aten::add.Tensor at train.py:31)", "... (in a program of 12 ops, recorded at train.py:20 to train.py:31)".
std::string blame_text(const Error& error, const Graph& graph);

// Does `work`, a call of the plugin about `graph`; what it throws gets that message.
template <typename Work>
auto blaming(const Graph& graph, Work work) {
  try {
    return work();
  } catch (const host::BrokenContract& error) {
    throw host::BrokenContract(blame_text(error, graph));
  } catch (const Error& error) {
    throw Error(error.code(), blame_text(error, graph));
  }
}

}  // namespace ltc
