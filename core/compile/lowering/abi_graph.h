// A graph as the C ABI has it.
#pragma once

#include <vector>

#include "core/ir/graph.h"
#include "ltc/plugin.h"

namespace ltc {

// A view on the type, which outlives it.
ltc_type abi_type_of(const Type& type);

// Borrows the graph, which stays unchanged while this lives. The ids of values, nodes, params and outputs are the graph's.
class AbiGraph {
 public:
  explicit AbiGraph(const Graph& graph);
  AbiGraph(const AbiGraph&) = delete;
  AbiGraph& operator=(const AbiGraph&) = delete;

  const ltc_graph* get() const { return &abi_; }  // with all that it points to, valid while this lives

 private:
  void add_types(const Graph& graph);
  void add_params(const Graph& graph);
  void add_attrs(const Graph& graph);
  void add_nodes(const Graph& graph);

  ltc_graph abi_{};
  std::vector<ltc_type> types_;
  std::vector<ltc_param> params_;
  std::vector<ltc_attr> attrs_;         // of all nodes, one after the other
  std::vector<ltc_string> strings_;     // of all attributes
  std::vector<std::string> locations_;  // of the nodes
  std::vector<ltc_node> nodes_;
  std::vector<const ltc_type*> type_list_;
  std::vector<const ltc_param*> param_list_;
  std::vector<const ltc_attr*> attr_list_;
  std::vector<const ltc_node*> node_list_;
};

}  // namespace ltc
