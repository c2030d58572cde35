// A graph as JSON, for people and their tools. Nothing of the project reads it. docs/archive.md has its members.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace ltc::deploy {

// A line for each param and each node. Equal graphs give equal texts.
std::string graph_json(const Graph& graph);

}  // namespace ltc::deploy
