#include "core/run/device/repetition.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "core/run/device/trace_state.h"

namespace ltc {
namespace {

constexpr size_t kHeldShare = 8;   // of a copy's nodes, one may have a result that is still held
constexpr int kPeriods = 8;        // that are looked at
constexpr size_t kFewNodes = 256;  // in all copies

// How far the sequence that begins at `i` agrees with the whole one, for each `i`: the Z algorithm (Gusfield, Algorithms on
// Strings, 1.4).
std::vector<size_t> common_prefixes(const std::vector<uint64_t>& keys) {
  const size_t count = keys.size();
  std::vector<size_t> lengths(count, 0);
  for (size_t i = 1, left = 0, right = 0; i < count; ++i) {
    size_t length = i < right ? std::min(right - i, lengths[i - left]) : 0;
    while (i + length < count && keys[length] == keys[i + length]) ++length;
    lengths[i] = length;
    if (i + length > right) left = i, right = i + length;
  }
  return lengths;
}

class Nodes {
 public:
  explicit Nodes(const TraceState& trace_state) : state_(trace_state) {
    for (size_t i = 0; i < trace_state.trace.records.size(); ++i) {
      if (is_node(trace_state.trace.records[i])) records_.push_back(i);
    }
  }

  size_t count() const { return records_.size(); }

  // A node's key is its op and line, and those of what made its operands, since loops within loops may have the ops of one line.
  std::vector<uint64_t> keys_from_the_last() const {
    std::vector<uint64_t> own(state_.trace.records.size(), 0);  // by record; params have none
    std::vector<uint64_t> keys(count());
    for (size_t node = 0; node < count(); ++node) {
      const Record& record = state_.trace.records[records_[node]];
      const uint64_t key = own[records_[node]] = hash_mix(record.op, uint64_t{state_.locations[node]} << 32);
      keys[count() - 1 - node] = key;
      for (const ValueId input : state_.trace.inputs(record)) {
        keys[count() - 1 - node] = hash_mix(keys[count() - 1 - node], input == kNone ? 1 : own[input]);
      }
    }
    return keys;
  }

  // Whether most of what the copy that begins with node `later` reads from outside is what the one before read too, from node
  // `earlier` on, or made.
  bool reads_the_same(size_t earlier, size_t later) const {
    const ValueId first = begin_of(earlier), second = begin_of(later);
    const std::unordered_set<ValueId> before = outside_values(earlier, later, first);
    size_t same = 0, other = 0;
    for (const ValueId value : outside_values(later, count(), second)) {
      const bool is_made_there = value >= first && !is_param(value);
      ++(is_made_there || before.contains(value) ? same : other);
    }
    return same > 0 && other <= same;
  }

  bool holds_little(size_t begin, size_t end) const {
    size_t held = 0;
    for (size_t record = records_[begin]; record < records_[end]; ++record) held += state_.owners[record] != nullptr;
    return held <= std::max<size_t>(1, (end - begin) / kHeldShare);
  }

  // The node in [begin, end) before which the fewest values of nodes exist that it or a later node reads. Among equals, the
  // first one from a node on that is `head` modulo their number.
  size_t narrowest(size_t begin, size_t end, size_t head) const {
    const std::vector<uint32_t> crossing = crossings();
    const size_t period = end - begin;
    const size_t first = begin + (head + period - begin % period) % period;
    size_t best = first;
    for (size_t i = 0; i < period; ++i) {
      const size_t node = first + i < end ? first + i : first + i - period;
      if (crossing[node] < crossing[best]) best = node;
    }
    return best;
  }

 private:
  bool is_param(ValueId value) const { return state_.trace.records[value].op == kOpParam; }

  // That the nodes in [begin, end) read: those before record `first`, and params.
  std::unordered_set<ValueId> outside_values(size_t begin, size_t end, ValueId first) const {
    std::unordered_set<ValueId> values;
    for (size_t node = begin; node < end; ++node) {
      for (const ValueId input : state_.trace.inputs(state_.trace.records[records_[node]])) {
        if (input != kNone && (input < first || is_param(input))) values.insert(input);
      }
    }
    return values;
  }

  // By node: how many values of earlier nodes it or a later one reads.
  std::vector<uint32_t> crossings() const {
    std::vector<uint32_t> last_reader(state_.trace.records.size(), 0);
    for (size_t node = 0; node < count(); ++node) {
      for (const ValueId input : state_.trace.inputs(state_.trace.records[records_[node]])) {
        if (input != kNone) last_reader[input] = static_cast<uint32_t>(node);
      }
    }
    std::vector<uint32_t> ends(count() + 1, 0), crossing(count(), 0);
    uint32_t open = 0;
    for (size_t node = 0; node < count(); ++node) {
      crossing[node] = open;
      open -= ends[node];
      const size_t next = node + 1 < count() ? records_[node + 1] : state_.trace.records.size();
      for (size_t value = records_[node]; value < next; ++value) {
        const Record& record = state_.trace.records[value];
        const bool is_result = is_node(record) || record.op == kOpResult;
        if (is_result && last_reader[value] > node) ++open, ++ends[last_reader[value]];
      }
    }
    return crossing;
  }

  // The first record of the node's op: params that it is the first to read stand before it.
  ValueId begin_of(size_t node) const {
    size_t record = records_[node];
    while (record > 0 && !is_node(state_.trace.records[record - 1]) && state_.trace.records[record - 1].op != kOpResult) --record;
    return static_cast<ValueId>(record);
  }

  const TraceState& state_;
  std::vector<size_t> records_;
};

}  // namespace

std::optional<Repetition> find_repetition(const TraceState& trace_state) {
  const Nodes nodes(trace_state);
  const size_t count = nodes.count();
  const std::vector<size_t> agrees = common_prefixes(nodes.keys_from_the_last());
  int left = kPeriods;
  for (size_t period = 1; period <= count / 2 && left > 0; ++period) {
    const size_t covered = agrees[period] + period;
    if (agrees[period] < period || covered < kFewNodes || covered < count / 4 * 3) continue;
    --left;
    const size_t last = count - period;
    if (!nodes.reads_the_same(last - period, last) || !nodes.holds_little(last - period, last)) continue;
    const size_t head = (count - period - agrees[period]) % period;  // of the sequence, as it was first recorded
    return Repetition{nodes.narrowest(last - period, last, head), period};
  }
  return {};
}

}  // namespace ltc
