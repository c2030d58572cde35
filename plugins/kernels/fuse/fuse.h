// Which ops become one kernel.
//
// Views, casts of one use and whatever else is cheap to compute again live where they are read. The rest, the candidates, is put
// into clusters: a candidate joins the cluster of what it reads where it needs, in each work item, just the elements that are
// there. Everything else gets a cluster of its own and meets the others through buffers.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "kernels/graph/graph.h"
#include "kernels/graph/options.h"

namespace ltc::kernels {

struct Cluster {
  enum class Form : uint8_t {
    kMap,        // a work item per element
    kRows,       // a work item per row of a reduction; it loops over the row, perhaps several times
    kUnfusable,  // one node: a scan, scatter, sort, or product of a library
  };
  Form form;
  NodeId rows_of = kNone;         // kRows: the reduction; kUnfusable: the node
  int64_t items = 0, length = 1;  // rows and their length, or elements
  std::vector<ValueId> members;   // in the order of the graph
  std::vector<ValueId> stored;    // of those, what others read
  std::set<ValueId> leaves;       // buffers read
  std::vector<NodeId> nodes;      // computed here, members or not
  std::string note;               // why its first member stands apart from what it reads; may be empty
};

struct Fusion {
  std::vector<Cluster> clusters;   // in an order to run them in
  std::vector<bool> is_stored;     // by value: lies in a buffer
  std::vector<std::string> notes;  // why candidates stand apart

  // The decisions, for people.
  std::string text(const Graph& graph) const;
};

Fusion fuse(const Graph& graph, const Options& options);

// Where the elements of a cluster's members lie, by its variables.
struct Positions {
  Index row, full;  // of a value with an element per row; of one with an element per element of a row
  bool is_row(const Cluster& cluster, const Value& value) const { return value.count == cluster.items; }
};
Positions positions_of(const Graph& graph, const Cluster& cluster, const Index& item, const Index& r, IndexSpace& space);

}  // namespace ltc::kernels
