// Barriers inside steps of which one part differs each time and the rest never.
//
// A step of a model that generates text with a static cache repeats but for the list of tokens, which is longer by one each time.
// As one program it would be compiled for each length. So where steps with the same ops keep differing in types or attributes
// only, the longest part that neither differs nor reads what does becomes a program of its own: steps are split before it, and
// those that begin with it after it. A step is known by its first ops and their lines. A split in the wrong place costs a program
// and changes no value.
//
// Threads: guarded by the caller (a LazyDevice calls it under the mutex of its trace).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ir/trace.h"
#include "core/report/miss.h"

namespace ltc {

class TraceSplits {
 public:
  // To be called for each trace that differs from an earlier one so; `equal`: of the trace. Does nothing the first times, nor
  // where a split would not pay.
  void learn(const Trace& trace, std::span<const LocationId> locations, EqualPart equal);

  // The smallest number of records above `length` at which some step is split; SIZE_MAX if there is none.
  size_t next(size_t length) const;

  // Whether a trace that has reached `length`, one that next() has given, is one to be split there. If so, the next trace is not
  // split for the same reason: its first ops may well be alike.
  bool end_here(const Trace& trace, std::span<const LocationId> locations, size_t length);

  // To be called when a trace ends, for whatever reason.
  void note_end() { last_ = std::exchange(ending_, 0); }

 private:
  bool has_many_variants(const Trace& trace, std::span<const LocationId> locations);

  struct Plan {
    uint64_t id;
    std::vector<OpId> ops;  // up to the split
    std::vector<LocationId> locations;
  };

  std::unordered_map<uint64_t, uint32_t> variants_;  // how many, by what they have in common
  std::deque<Plan> plans_;                           // the newest first
  uint64_t newest_ = 0, ending_ = 0, last_ = 0;      // ids: of the plan by which this trace ends, and the one before
};

}  // namespace ltc
