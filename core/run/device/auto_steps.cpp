#include "core/run/device/auto_steps.h"

#include <algorithm>
#include <atomic>

#include "core/report/metrics.h"
#include "core/run/device/repetition.h"

namespace ltc {
namespace {

constexpr size_t kSteps = 16;
constexpr size_t kLoopsRefuted = 256;
constexpr size_t kShortTrace = 256;  // records: one that a read or mark_step() has ended may be a part of much
constexpr size_t kShortTurn = 128;   // nodes: a loop of fewer goes on until it has as many
constexpr int kCutsOfOneStep = 4;    // between two mark_step(): more are steps of a program that calls it now and then
constexpr int kHabit = 2;            // steps that were cut, one after the other

bool is_own(std::string_view reason) {
  return reason == metrics::kOptimizerStep || reason == metrics::kBackward || reason == metrics::kRepetition ||
         reason == metrics::kKnownStep;
}

size_t turns_of(size_t period, size_t nodes) { return (nodes + period - 1) / period; }

// How often the last `period` nodes are of the op and its line.
size_t heads(const TraceState& trace_state, CalledOp op, size_t period) {
  size_t count = 0, node = trace_state.locations.size();
  const size_t begin = node - period;
  for (size_t i = trace_state.trace.records.size(); node > begin && i-- > 0;) {
    const Record& record = trace_state.trace.records[i];
    if (!is_node(record)) continue;
    --node;
    count += record.op == op.id && trace_state.locations[node] == op.where;
  }
  return count;
}

std::atomic<WithinBackward> within_backward_probe{nullptr};

}  // namespace

void set_within_backward(WithinBackward probe) { within_backward_probe = probe; }

bool within_backward() {
  const WithinBackward probe = within_backward_probe.load(std::memory_order_relaxed);
  return probe && probe();
}

size_t AutoSteps::next(size_t records) const {
  if (!is_on_) return SIZE_MAX;
  if (is_watching_ || heads_left_ > 0) return 0;
  size_t nearest = std::min(next_look_, next_turn_look_);
  for (const Step& step : steps_) {
    if (step.end.records > records) nearest = std::min(nearest, step.end.records);
  }
  return nearest;
}

std::string_view AutoSteps::ends_before(TraceState& trace_state, CalledOp op) {
  if (!is_on_) return {};
  const Place place = place_of(trace_state);
  if (place.records == 0) return {};
  const CalledOp first = trace_state.first;
  const auto known = find_known(first, place);
  if (known != steps_.end() && op == first && !known->reason.empty()) return known->reason;
  if (heads_left_ > 0 && op == first && --heads_left_ == 0) return metrics::kRepetition;
  if (turns_before(trace_state, op)) return metrics::kRepetition;
  if (trace_state.seen != 0 && (op.where & kBackwardBits) == 0) {
    trace_state.seen = 0;
    notice_backward(trace_state);
  }
  if (known_end_ != 0 && place.records >= known_end_) miss_end(trace_state);
  if (is_watching_ && !is_in_optimizer_) {
    if (behind_optimizer_ && forward_.contains(op.where)) return metrics::kOptimizerStep;
    if (op == first) return metrics::kBackward;
    if (forward_.contains(op.where)) begin_loop(trace_state, op);
  }
  if (place.records >= next_look_) {
    look_for_repetition(trace_state);
    if (turns_before(trace_state, op)) return metrics::kRepetition;
  }
  return {};
}

// That began and has grown as the trace.
std::deque<AutoSteps::Step>::iterator AutoSteps::find_known(CalledOp first, Place end) {
  return std::ranges::find_if(steps_, [&](const Step& step) { return step.first == first && step.end == end; });
}

// A step that has come as far before is expected to end as it did.
void AutoSteps::notice_backward(const TraceState& trace_state) {
  behind_backward_ = place_of(trace_state);
  size_t end = SIZE_MAX;
  for (const Step& step : steps_) {
    if (step.first != trace_state.first || step.behind_backward != behind_backward_) continue;
    is_left_ |= step.reason.empty();
    if (!step.is_missed) end = std::min(end, step.end.records);
  }
  if (is_left_) return;
  if (end == SIZE_MAX) return watch(trace_state);
  known_end_ = end;
}

// An optimizer's first step makes its state, and is longer than the others: they would be expected to end as late.
void AutoSteps::optimizer_ends(const TraceState& trace_state) {
  is_in_optimizer_ = false;
  if (!behind_backward_) return;
  behind_optimizer_ = place_of(trace_state);
  const auto is_expected = [&](const Step& step) {
    return step.first == trace_state.first && step.behind_backward == behind_backward_ &&
           step.behind_optimizer == behind_optimizer_;
  };
  if (known_end_ != 0 && std::ranges::none_of(steps_, is_expected)) watch(trace_state);
}

void AutoSteps::miss_end(const TraceState& trace_state) {
  for (Step& step : steps_) step.is_missed |= step.first == trace_state.first && step.behind_backward == behind_backward_;
  watch(trace_state);
}

void AutoSteps::watch(const TraceState& trace_state) {
  is_watching_ = true;
  known_end_ = 0;
  const auto backward = std::ranges::find_if(trace_state.locations, [](LocationId where) { return where & kBackwardBits; });
  forward_.insert(trace_state.locations.begin(), backward);
  forward_.erase(kNoLocation);
}

// A loop whose first turn is in the trace: it begins anew behind the next backward.
void AutoSteps::begin_loop(TraceState& trace_state, CalledOp op) {
  trace_state.first = op;
  behind_backward_.reset();
  is_watching_ = false;
  forward_.clear();
}

bool AutoSteps::turns_before(const TraceState& trace_state, CalledOp op) {
  if (!turn_) return false;
  const size_t nodes = trace_state.locations.size();
  if (nodes == turn_->nodes && op.where == turn_->where) {
    heads_of_next_ = heads(trace_state, op, turn_->period) * turns_of(turn_->period, kShortTurn);
    return true;
  }
  if (nodes >= turn_->nodes) turn_.reset();
  next_turn_look_ = turn_ ? trace_state.trace.records.size() + (turn_->nodes - nodes) : SIZE_MAX;
  return false;
}

void AutoSteps::look_for_repetition(const TraceState& trace_state) {
  while (next_look_ <= trace_state.trace.records.size()) next_look_ *= 2;
  if (turn_ || heads_left_ > 0 || no_loop_.contains(trace_state.trace.hash)) return;
  const std::optional<Repetition> found = find_repetition(trace_state);
  if (!found) {
    if (no_loop_.size() >= kLoopsRefuted) no_loop_.clear();
    no_loop_.insert(trace_state.trace.hash);
    return;
  }
  const auto copies = [&](size_t nodes) { return turns_of(found->period, nodes) * found->period; };
  turn_ = Turn{found->begin + copies(trace_state.locations.size() - found->begin), trace_state.locations[found->begin],
               found->period};
}

void AutoSteps::note_end(const TraceState& trace_state, std::string_view reason) {
  if (!is_on_) return;
  if (!trace_state.trace.records.empty() && reason != metrics::kIdle) remember(trace_state, reason);
  if (reason == metrics::kMarkStep) note_mark();
  behind_backward_.reset();
  behind_optimizer_.reset();
  is_watching_ = is_left_ = is_in_optimizer_ = false;
  known_end_ = 0;
  forward_.clear();
  heads_left_ = reason == metrics::kRepetition ? std::exchange(heads_of_next_, 0) : 0;
  turn_.reset();
  next_turn_look_ = SIZE_MAX;
  next_look_ = kFirstLook;
}

void AutoSteps::remember(const TraceState& trace_state, std::string_view reason) {
  const Place end = place_of(trace_state);
  cuts_since_mark_ += is_own(reason);
  const auto known = find_known(trace_state.first, end);
  Step step{trace_state.first, end, behind_backward_, behind_optimizer_, is_own(reason) ? reason : metrics::kKnownStep};
  if (known != steps_.end()) {
    step = *known;
    steps_.erase(known);
  } else if (!is_own(reason) && end.records < kShortTrace) {
    return;
  }
  step.is_cut |= is_own(reason);
  step.is_missed = false;
  steps_.push_front(step);
  if (steps_.size() > kSteps) steps_.pop_back();
}

// Where the program ends its steps by itself, those that were cut are left to it.
void AutoSteps::note_mark() {
  if (cuts_since_mark_ > 0) cut_in_row_ = cuts_since_mark_ <= kCutsOfOneStep ? cut_in_row_ + 1 : 0;
  for (Step& step : steps_) {
    if (step.is_cut && cut_in_row_ >= kHabit) step.reason = {};
    step.is_cut = false;
  }
  cuts_since_mark_ = 0;
}

}  // namespace ltc
