// What a plugin that understands symbolic sizes (ltc/symbolic.h) has compiled: found again for graphs of other sizes.
//
// Size: at most `capacity` entries; the least recently used leaves first.
// Threads: guarded by the caller, as the ProgramCache beside it. Gone before the device.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "core/compile/symbolic_graph.h"
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

  explicit SymbolicPrograms(size_t capacity) : capacity_(capacity) {}

  // Code that computes the graph. `precision`: see precision.h.
  std::optional<Found> find(const Anatomy& graph, uint32_t precision);

  // The graph as the general one that it shows to be beside the most similar of those compiled before; itself where there is
  // none.
  SymbolicGraph generalise(const Anatomy& graph, uint32_t precision) const;

  void insert(SymbolicGraph graph, uint32_t precision, Code code);

 private:
  struct Entry {
    SymbolicGraph graph;
    uint32_t precision;
    Code code;
  };

  size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace ltc
