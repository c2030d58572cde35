// Programs already built, keyed by the trace as it was recorded, so that a repeated step compiles once.
//
// Key: the records (ops, types, attributes, operands), the roots, and what products may round; not numbers.
//   Compared in full after the hash agrees: a collision costs a comparison, never a wrong program.
// Size: at most `capacity` programs, and at most `limit_bytes` by an estimate (program_bytes), but always the newest one. The
// least
//   recently used leaves first, and a running one outlives its eviction.
// A program from the disk whose first run has failed is forgotten, here and there, so that it is compiled again.
// Threads: guarded by the caller (a LazyDevice calls it under its submission mutex).
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "core/compile/lowering/program.h"
#include "core/ir/trace.h"

namespace ltc {

// A step as the program recorded it.
struct RecordedStep {
  Trace trace;
  std::vector<Root> roots;
  uint32_t precision = 0;                            // see precision.h
  std::vector<LocationId> locations = {};            // of the trace's nodes, when it was compiled
  std::vector<uint32_t> buffers = {}, scalars = {};  // which of the trace's params the program takes, in its order
  uint32_t ops = 0;                                  // of the trace, that the roots need
};

struct BackgroundJob;  // run/device/background_compiler.h

struct CachedProgram {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const RecordedStep> step;
  std::shared_ptr<BackgroundJob> awaited = {};  // of an interim program: the one that is to take its place
};

// The programs of a step's ops, by record: a step that failed may fail again.
struct OpPrograms {
  std::shared_ptr<const RecordedStep> step;
  std::vector<std::shared_ptr<const Program>> by_record;
};

// An estimate of the memory that a program takes. The plugin's executables count as a share for each node, those that an
// interim program waits for too.
uint64_t program_bytes(const Program& program);

class ProgramCache {
 public:
  explicit ProgramCache(size_t capacity, uint64_t limit_bytes = uint64_t{1} << 30)
      : capacity_(capacity), limit_bytes_(limit_bytes) {}

  // Null if the trace is not known. `precision`: see precision.h.
  const CachedProgram* find(const Trace& trace, std::span<const Root> roots, uint32_t precision = 0);
  // In the place of the trace's program, if there is one.
  const CachedProgram* insert(CachedProgram program);
  void clear() { by_hash_.clear(), entries_.clear(), bytes_ = 0; }
  size_t size() const { return entries_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    uint64_t key;
    CachedProgram program;
    uint64_t bytes;
  };
  using EntryIterator = std::list<Entry>::iterator;

  // entries_.end() if there is none.
  EntryIterator find_entry(const Trace& trace, std::span<const Root> roots, uint32_t precision);
  void erase(EntryIterator entry);

  size_t capacity_;
  uint64_t limit_bytes_, bytes_ = 0;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_multimap<uint64_t, EntryIterator> by_hash_;
};

}  // namespace ltc
