// Types and graphs as bytes for the disk.
#pragma once

#include <vector>

#include "core/base/bytes.h"
#include "core/ir/graph.h"

namespace ltc {

void write_type(ByteWriter& out, TypeId type);
TypeId read_type(ByteReader& in);

// All of a graph but its locations, or with them as numbers of a list of locations: 0 for none, else 1 + the first that is equal.
void write_graph(ByteWriter& out, const Graph& graph, const std::vector<LocationId>* locations = nullptr);
// Throws Error(kDataCorrupt) for what write_graph cannot have written.
Graph read_graph(ByteReader& in, const std::vector<LocationId>* locations = nullptr);

}  // namespace ltc
