// What the program has asked for since the last barrier: a flat array of fixed-size records, appended to by recording.
//
// A value is named by the index of its record. A node of n results takes n consecutive records, the first being the node itself.
// The hash runs along while recording, so that a barrier finds a known trace without walking it; equality is then checked in
// full, which is a comparison of memory. Numbers and buffers stand aside and are no part of the identity.
//
// Not thread-safe: a LazyDevice guards its trace with its mutex.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/base/hash.h"
#include "core/ir/graph.h"

namespace ltc {

inline constexpr uint32_t kInlineOperands = 4;

struct Record {
  OpId op = kOpParam;
  TypeId type = kNoType;
  AttrsId attrs = kNoAttrs;
  uint32_t count = 0;                 // operands
  uint32_t in[kInlineOperands] = {};  // their values; with more operands than fit, in[0] is where they begin in Trace::operands
};
static_assert(sizeof(Record) == 32, "compared and hashed as memory: no padding");

struct Trace {
  std::vector<Record> records;
  std::vector<uint32_t> operands;  // of records with more than kInlineOperands
  uint64_t hash = 0;

  ValueId add(const Record& record) {
    const auto value = static_cast<ValueId>(records.size());
    records.push_back(record);
    hash = hash_mix(hash, digest(record));
    return value;
  }

  ValueId add_node(OpId op, TypeId type, AttrsId attrs, std::span<const ValueId> inputs) {
    Record record{op, type, attrs, static_cast<uint32_t>(inputs.size())};
    if (inputs.size() <= kInlineOperands) {
      std::copy(inputs.begin(), inputs.end(), record.in);
    } else {
      record.in[0] = static_cast<uint32_t>(operands.size());
      operands.insert(operands.end(), inputs.begin(), inputs.end());
      for (const ValueId input : inputs) hash = hash_mix(hash, input);
    }
    return add(record);
  }

  // A further result of `node`, whose records must be the last ones.
  ValueId add_result(ValueId node, uint32_t index, TypeId type) { return add({kOpResult, type, kNoAttrs, 2, {node, index}}); }

  std::span<const ValueId> inputs(const Record& record) const {
    if (record.count <= kInlineOperands) return {record.in, record.count};
    return {operands.data() + record.in[0], record.count};
  }

  bool operator==(const Trace& other) const {
    return hash == other.hash && records.size() == other.records.size() && operands == other.operands &&
           (records.empty() || std::memcmp(records.data(), other.records.data(), records.size() * sizeof(Record)) == 0);
  }
  void clear() { records.clear(), operands.clear(), hash = 0; }

 private:
  // A multilinear hash: the products wait for nothing, least of all for the record before. Any odd constants do.
  static uint64_t digest(const Record& record) {
    const auto words = std::bit_cast<std::array<uint64_t, 4>>(record);
    return words[0] * 0x9e3779b97f4a7c15 + words[1] * 0xbf58476d1ce4e5b9 + words[2] * 0x94d049bb133111eb +
           words[3] * 0xd6e8feb86659fd93;
  }
};

// A value that somebody still holds at the barrier, and the buffer param that it replaces in its storage, if any.
struct Root {
  ValueId value;
  ValueId replaces = kNone;
  bool operator==(const Root&) const = default;
};

// The graph that computes the roots, without what nobody needs. Buffer and scalar params keep the order of their records;
// `buffers` and `scalars` say which of the trace's were kept. `locations`, by node in the order of their records, may be empty.
struct TraceGraph {
  Graph graph;
  std::vector<uint32_t> buffers, scalars;
};
TraceGraph build_graph(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations = {});

}  // namespace ltc
