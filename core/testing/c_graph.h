// Builds an ltc_graph by hand, for tests of what stands below the core's own graph.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/host/sized.h"

namespace ltc::testing {

// CGraph g;
// auto x = g.param(LTC_F32, {2, 3});
// g.output(g.node("aten::neg", {x}, LTC_F32, {2, 3}));
// device.lower(g.get());
class CGraph {
 public:
  uint32_t value(ltc_dtype dtype, std::vector<int64_t> sizes) {
    sizes.reserve(sizes.size() + 1);  // never null, also for rank 0
    auto& stored = sizes_.emplace_back(std::move(sizes));
    auto& type = types_.emplace_back(host::sized<ltc_type>());
    type.dtype = dtype;
    type.rank = static_cast<uint32_t>(stored.size());
    type.sizes = stored.data();
    type_pointers_.push_back(&type);
    return static_cast<uint32_t>(types_.size() - 1);
  }

  uint32_t param(ltc_dtype dtype, std::vector<int64_t> sizes, uint32_t flags = 0, uint32_t alias_output = LTC_NONE) {
    auto& param = params_.emplace_back(host::sized<ltc_param>());
    param.value = value(dtype, std::move(sizes));
    param.flags = flags;
    param.alias_output = alias_output;
    param_pointers_.push_back(&param);
    return param.value;
  }
  uint32_t scalar(ltc_dtype dtype) { return param(dtype, {}, LTC_PARAM_SCALAR); }

  // A node with one output and, as aten::add wants, perhaps an alpha.
  uint32_t node(std::string name, std::vector<uint32_t> inputs, ltc_dtype dtype, std::vector<int64_t> sizes,
                std::vector<int64_t> alpha = {}) {
    const uint32_t result = value(dtype, std::move(sizes));
    auto& stored = nodes_.emplace_back(Node{std::move(name), std::move(inputs), result, std::move(alpha), {}, {}, {}});
    stored.node = host::sized<ltc_node>();
    stored.node.name = {stored.name.data(), stored.name.size()};
    stored.node.input_count = stored.inputs.size();
    stored.node.inputs = stored.inputs.data();
    stored.node.output_count = 1;
    stored.node.outputs = &stored.output;
    stored.attr = host::sized<ltc_attr>();
    stored.attr.name = {"alpha", 5};
    stored.attr.kind = LTC_ATTR_INT;
    stored.attr.count = 1;
    stored.attr.value.ints = stored.alpha.data();
    stored.attr_pointer = &stored.attr;
    stored.node.attr_count = stored.alpha.empty() ? 0 : 1;
    stored.node.attrs = &stored.attr_pointer;
    node_pointers_.push_back(&stored.node);
    return result;
  }

  void output(uint32_t value) { outputs_.push_back(value); }

  // Borrows from this object.
  const ltc_graph& get() {
    graph_ = host::sized<ltc_graph>();
    graph_.value_count = type_pointers_.size();
    graph_.types = type_pointers_.data();
    graph_.param_count = param_pointers_.size();
    graph_.params = param_pointers_.data();
    graph_.node_count = node_pointers_.size();
    graph_.nodes = node_pointers_.data();
    graph_.output_count = outputs_.size();
    graph_.outputs = outputs_.data();
    return graph_;
  }

 private:
  struct Node {
    std::string name;
    std::vector<uint32_t> inputs;
    uint32_t output;
    std::vector<int64_t> alpha;
    ltc_attr attr;
    const ltc_attr* attr_pointer;
    ltc_node node;
  };
  // Deques: what is pointed to must not move.
  std::deque<std::vector<int64_t>> sizes_;
  std::deque<ltc_type> types_;
  std::deque<ltc_param> params_;
  std::deque<Node> nodes_;
  std::vector<const ltc_type*> type_pointers_;
  std::vector<const ltc_param*> param_pointers_;
  std::vector<const ltc_node*> node_pointers_;
  std::vector<uint32_t> outputs_;
  ltc_graph graph_{};
};

}  // namespace ltc::testing
