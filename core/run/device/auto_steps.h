// Where a step ends by itself: before the op with which the program's loop begins anew. Three signs of a loop are known.
//
// - An optimizer's step has ended, and a line of the step's forward is reached again.
// - A backward has ended, and the trace's first op is asked for again.
// - The last ops have been recorded twice (repetition.h), or the trace is one that has ended before, and its first op is asked
//   for again.
//
// It decides by the recorded ops and their lines alone, never by time or addresses, so that the ranks of a distributed program
// decide alike. A wrong decision costs a program and changes no value. A program that ends its steps with mark_step() is left
// alone once a step of it has been cut.
//
// Threads: guarded by the caller (a LazyDevice calls it under the mutex of its trace).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "core/ir/location.h"
#include "core/run/device/trace_state.h"

namespace ltc {

// Whether the calling thread is within a backward, for ops whose line does not say so: those of hooks, and forwards that are
// computed again. The front end's.
using WithinBackward = bool (*)();
void set_within_backward(WithinBackward probe);
bool within_backward();

class AutoSteps {
 public:
  explicit AutoSteps(bool is_on) : is_on_(is_on) {}

  // The number of records from which on ends_before() is to be asked before an op, in a trace of so many.
  size_t next(size_t records) const;
  // Whether it is to be asked too before the first op behind a backward.
  bool awaits_backward() const { return is_on_ && !behind_backward_; }

  bool is_watching() const { return is_watching_; }  // it is to be asked before each op

  // The counter of the barrier that is due before the op, which is about to be recorded; empty if the trace goes on. Takes note
  // of the trace's `seen`.
  std::string_view ends_before(TraceState& trace_state, CalledOp op);

  // To be called around each step of an optimizer. Within it no loop is looked for behind a backward.
  void optimizer_begins() { is_in_optimizer_ = true; }
  void optimizer_ends(const TraceState& trace_state);

  // To be called when a trace ends, for whatever reason, while `trace_state` still has it.
  void note_end(const TraceState& trace_state, std::string_view reason);

 private:
  // How far a trace has come.
  struct Place {
    size_t records = 0;
    uint64_t hash = 0;
    bool operator==(const Place&) const = default;
  };
  // A trace that has ended.
  struct Step {
    CalledOp first;
    Place end;
    std::optional<Place> behind_backward;  // where that was noticed
    std::optional<Place> behind_optimizer;
    std::string_view reason;  // to end it again; empty: the program does it
    bool is_cut = false;      // it was ended here since the last mark_step()
    bool is_missed = false;   // the last one that came as far went on
  };
  // A loop begins anew after so many nodes of the trace, at this line.
  struct Turn {
    size_t nodes;
    LocationId where;
    size_t period;  // nodes of one turn
  };

  std::deque<Step>::iterator find_known(CalledOp first, Place end);
  void notice_backward(const TraceState& trace_state);
  static Place place_of(const TraceState& trace_state) { return {trace_state.trace.records.size(), trace_state.trace.hash}; }
  void miss_end(const TraceState& trace_state);
  void watch(const TraceState& trace_state);
  void begin_loop(TraceState& trace_state, CalledOp op);
  bool turns_before(const TraceState& trace_state, CalledOp op);
  void look_for_repetition(const TraceState& trace_state);
  void remember(const TraceState& trace_state, std::string_view reason);
  void note_mark();

  const bool is_on_;
  std::deque<Step> steps_;                // the last one that ended first
  std::unordered_set<uint64_t> no_loop_;  // hashes of traces without a repetition
  size_t heads_of_next_ = 0;  // how often the next trace has its first op, before it ends in the same place of the loop
  int cuts_since_mark_ = 0, cut_in_row_ = 0;  // own barriers; steps of the program that had some

  // These are facts about the trace that grows.
  std::optional<Place> behind_backward_;
  bool is_watching_ = false;                // each op is looked at
  bool is_left_ = false;                    // the program ends the step
  size_t known_end_ = 0;                    // in records, of a known step that has come as far as its backward; 0: none
  std::unordered_set<LocationId> forward_;  // its lines, once it is behind a backward that no known step has had
  bool is_in_optimizer_ = false;
  std::optional<Place> behind_optimizer_;  // the last one behind the backward
  std::optional<Turn> turn_;
  size_t next_look_ = kFirstLook;  // for a repetition, in records
  size_t next_turn_look_ = SIZE_MAX;
  size_t heads_left_ = 0;  // 0: they are not counted

  static constexpr size_t kFirstLook = 1024;
};

}  // namespace ltc
