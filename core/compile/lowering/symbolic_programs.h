// Programs of a plugin that understands symbolic sizes (ltc/symbolic.h), found again for graphs of other sizes.
//
// Size: at most `capacity` entries, and at most `limit_bytes` by an estimate, but always the newest one. The least recently used
// leaves first.
// Threads: any. Gone before the device.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/compile/lowering/symbolic_graph.h"
#include "ltc/plugin.h"

namespace ltc {

class SymbolicPrograms {
 public:
  struct Code {
    std::shared_ptr<ltc_program> program;  // null if it was loaded
    std::shared_ptr<ltc_executable> executable;
  };
  struct Found {
    Code code;
    std::vector<int64_t> symbols;  // their values; none for code of just these sizes
  };

  explicit SymbolicPrograms(size_t capacity, uint64_t limit_bytes = uint64_t{256} << 20)
      : capacity_(capacity), limit_bytes_(limit_bytes) {}

  // Code that computes the graph. `precision`: see precision.h.
  std::optional<Found> find(const GraphSkeleton& graph, uint32_t precision);

  // Whether there is code for many sizes of graphs of this structure, be they these or others.
  bool has_general(const GraphSkeleton& graph, uint32_t precision) const;

  // The graph as the general one that it shows to be beside the most similar of those compiled before; itself where there is
  // none.
  SymbolicGraph unify_with_nearest(const GraphSkeleton& graph, uint32_t precision) const;

  void insert(SymbolicGraph graph, uint32_t precision, Code code);
  // As insert(), but makes the graph at the next find(): a program that stays with its sizes needs none.
  void insert_later(std::function<SymbolicGraph()> graph, uint32_t precision, Code code);
  uint64_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    SymbolicGraph graph;
    uint32_t precision;
    Code code;
    uint64_t bytes;
  };

  struct Later {
    std::function<SymbolicGraph()> graph;
    uint32_t precision;
    Code code;
  };
  void insert_pending();

  const size_t capacity_;
  const uint64_t limit_bytes_;
  mutable std::mutex mutex_;  // guards the rest
  uint64_t bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::vector<Later> later_;
};

}  // namespace ltc
