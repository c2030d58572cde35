// Collectives between processes (ltc/collective.h) as a library takes them.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/graph/graph.h"
#include "ltc/graph.hpp"

namespace ltc::kernels {

enum class CollectiveKind : uint8_t { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kAllToAll };
enum class Reduction : uint8_t { kSum, kProduct, kMin, kMax };

// From one buffer into another of the same dtype. A third, the token, only keeps the order.
struct Collective {
  CollectiveKind kind;
  ltc_dtype dtype;
  int64_t group;                  // its number in this process
  int64_t count;                  // elements of the input; of kReduceScatter, of the result
  Reduction reduction = {};       // of kAllReduce and kReduceScatter
  int64_t root = 0;               // of kBroadcast
  std::vector<int64_t> to, from;  // of kAllToAll: elements, by rank
  bool operator==(const Collective&) const = default;
};

bool is_collective(const plugin::Node& node);
// Whether a collective is one of a form and dtype that a library takes.
bool is_library_collective(const plugin::Node& node);
// The number of its group.
int64_t group_of(const plugin::Node& node);

// Adds to `node` what it has as text: the reduction.
void import_reduction(const ltc_node& abi, Node& node);

Collective collective(const Graph& graph, const Node& node);
// Elements of the result.
int64_t result_count(const Collective& of, const Node& node);

}  // namespace ltc::kernels
