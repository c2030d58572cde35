// A graph of the C ABI in memory of its own, which can be taken away: a plugin that reads it then crashes.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "ltc/plugin.h"

namespace ltc::conformance {

class GraphCopy {
 public:
  explicit GraphCopy(const ltc_graph& graph) {
    auto* copy = take(&graph, 1);
    copy->types = each(graph.types, graph.value_count, [&](ltc_type& type) { type.sizes = take(type.sizes, type.rank); });
    copy->params = each(graph.params, graph.param_count, [](ltc_param&) {});
    copy->nodes = each(graph.nodes, graph.node_count, [&](ltc_node& node) { copy_node(node); });
    copy->outputs = take(graph.outputs, graph.output_count);
    graph_ = copy;
  }
  ~GraphCopy() { ::munmap(memory_, kBytes); }
  GraphCopy(const GraphCopy&) = delete;
  GraphCopy& operator=(const GraphCopy&) = delete;

  const ltc_graph* get() const { return graph_; }
  void take_away() { ::mprotect(memory_, kBytes, PROT_NONE); }

 private:
  static constexpr size_t kBytes = 1 << 20;

  template <typename T>
  T* take(const T* from, size_t count) {
    T* to = reinterpret_cast<T*>(memory_ + used_);
    used_ += (count * sizeof(T) + 15) / 16 * 16;
    ensure(used_ <= kBytes, "a graph of more than ", kBytes, " bytes");
    if (count > 0) std::memcpy(to, from, count * sizeof(T));
    return to;
  }
  // Pointers to copies, each changed to point to copies itself.
  template <typename T, typename Change>
  const T* const* each(const T* const* from, size_t count, Change change) {
    const T** list = take(const_cast<const T**>(from), count);
    for (size_t i = 0; i < count; ++i) {
      T* item = take(from[i], 1);
      change(*item);
      list[i] = item;
    }
    return list;
  }
  void copy_string(ltc_string& string) {
    if (string.data) string.data = take(string.data, string.size + 1);
  }
  void copy_attr(ltc_attr& attr) {
    copy_string(attr.name);
    if (attr.kind == LTC_ATTR_STRING || attr.kind == LTC_ATTR_STRINGS) {
      ltc_string* strings = take(const_cast<ltc_string*>(attr.value.strings), attr.count);
      std::for_each_n(strings, attr.count, [&](ltc_string& string) { copy_string(string); });
      attr.value.strings = strings;
    } else {
      attr.value.ints = take(attr.value.ints, attr.count);  // doubles are of the same size
    }
  }
  void copy_node(ltc_node& node) {
    copy_string(node.name);
    copy_string(node.location);
    node.inputs = take(node.inputs, node.input_count);
    node.outputs = take(node.outputs, node.output_count);
    node.attrs = each(node.attrs, node.attr_count, [&](ltc_attr& attr) { copy_attr(attr); });
  }

  char* memory_ = static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  size_t used_ = 0;
  const ltc_graph* graph_ = nullptr;
};

}  // namespace ltc::conformance
