// Finds the loop in a trace that grows: a sequence of ops that has just been recorded twice.
#pragma once

#include <cstddef>
#include <optional>

namespace ltc {

struct TraceState;

struct Repetition {
  size_t begin;   // a node with which a copy begins, where the fewest values are handed over
  size_t period;  // nodes of one copy
};

// The shortest sequence of ops and lines whose copies are most of the trace, to its end. The last copy reads mostly what the one
// before has read too (weights) or made, and few values of that one are still held. So neither the layers of a model are a loop,
// nor an optimizer's ops for each parameter, nor what a backward is to differentiate. Linear in the trace.
std::optional<Repetition> find_repetition(const TraceState& trace_state);

}  // namespace ltc
