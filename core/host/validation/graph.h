// The rules of a graph that the host gives a plugin.
#pragma once

#include "core/host/validation/call.h"

namespace ltc::host::validation {

// Reports the rules that the graph breaks. False where its signature cannot be read, or the plugin would read what is not there.
bool check_graph(Call& call, const ltc_graph* graph);

bool check_type(Call& call, const ltc_type* type);

// The symbols of a graph that is valid; null where the chain has none, or wrong ones.
const ltc_symbolic_sizes* check_symbols(Call& call, const ltc_extension* chain, const ltc_graph& graph);

}  // namespace ltc::host::validation
