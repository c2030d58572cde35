// Programs already built, keyed by the trace as it was recorded, so that a repeated step compiles once.
//
// Key: the records (ops, types, attributes, operands), the roots, and what products may round; not numbers.
//   Compared in full after the hash agrees: a collision costs a comparison, never a wrong program.
// Size: at most `capacity` programs; the least recently used leaves first, and a running one outlives its eviction.
// Threads: guarded by the caller (a LazyDevice calls it under its submission mutex).
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "core/compile/program.h"
#include "core/ir/trace.h"

namespace ltc {

// A step as the program recorded it.
struct RecordedStep {
  Trace trace;
  std::vector<Root> roots;
  uint32_t precision = 0;                            // see precision.h
  std::vector<LocationId> locations = {};            // of the trace's nodes, when it was compiled
  std::vector<uint32_t> buffers = {}, scalars = {};  // which of the trace's params the program takes, in its order
};

struct CachedProgram {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const RecordedStep> step;
};

class ProgramCache {
 public:
  explicit ProgramCache(size_t capacity) : capacity_(capacity) {}

  // Null if the trace is not known. `precision`: see precision.h.
  const CachedProgram* find(const Trace& trace, std::span<const Root> roots, uint32_t precision = 0);
  const CachedProgram* insert(CachedProgram program);
  void clear() { by_hash_.clear(), entries_.clear(); }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t key;
    CachedProgram program;
  };

  size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_multimap<uint64_t, std::list<Entry>::iterator> by_hash_;
};

}  // namespace ltc
