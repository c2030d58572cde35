// The ops that the program has asked for since the last barrier: a flat array of fixed-size records. Recording appends to it.
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

// Not a param, a number, or a further result of a node.
inline bool is_node(const Record& record) { return record.op > kOpResult; }

struct Trace {
  std::vector<Record> records;
  std::vector<uint32_t> operands;  // of records with more than kInlineOperands
  uint64_t hash = 0;

  ValueId add_param(OpId op, TypeId type) { return add(op, type, kNoAttrs, 0, 0, 0, 0, 0); }

  ValueId add_node(OpId op, TypeId type, AttrsId attrs, std::span<const ValueId> inputs) {
    const auto count = static_cast<uint32_t>(inputs.size());
    const auto in = [&](uint32_t i) { return i < count ? inputs[i] : 0; };
    if (count <= kInlineOperands) return add(op, type, attrs, count, in(0), in(1), in(2), in(3));
    const auto begin = static_cast<uint32_t>(operands.size());
    operands.insert(operands.end(), inputs.begin(), inputs.end());
    for (const ValueId input : inputs) hash = hash_mix(hash, input);
    return add(op, type, attrs, count, begin, 0, 0, 0);
  }

  // A further result of `node`, whose records must be the last ones.
  ValueId add_result(ValueId node, uint32_t index, TypeId type) { return add(kOpResult, type, kNoAttrs, 2, node, index, 0, 0); }

  std::span<const ValueId> inputs(const Record& record) const {
    if (record.count <= kInlineOperands) return {record.in, record.count};
    return {operands.data() + record.in[0], record.count};
  }

  // Whether the value's node reads any other than numbers. True of a param.
  bool reads_values(ValueId value) const;

  bool operator==(const Trace& other) const {
    return hash == other.hash && records.size() == other.records.size() && operands == other.operands &&
           (records.empty() || std::memcmp(records.data(), other.records.data(), records.size() * sizeof(Record)) == 0);
  }
  void clear() { records.clear(), operands.clear(), hash = 0; }

 private:
  // The record's fields as the words of its memory, made in registers: a record that is put together in memory by its fields and
  // then read by words makes the processor wait for the stores.
  ValueId add(OpId op, TypeId type, AttrsId attrs, uint32_t count, ValueId a, ValueId b, ValueId c, ValueId d) {
    const auto value = static_cast<ValueId>(records.size());
    const uint64_t first = word(op, type), second = word(attrs, count), third = word(a, b), fourth = word(c, d);
    char* const record = reinterpret_cast<char*>(&records.emplace_back());
    std::memcpy(record, &first, 8), std::memcpy(record + 8, &second, 8);
    std::memcpy(record + 16, &third, 8), std::memcpy(record + 24, &fourth, 8);
    // A multilinear hash: the products wait for nothing, least of all for the record before. Any odd constants do.
    hash = hash_mix(hash, first * 0x9e3779b97f4a7c15 + second * 0xbf58476d1ce4e5b9 + third * 0x94d049bb133111eb +
                              fourth * 0xd6e8feb86659fd93);
    return value;
  }
  static uint64_t word(uint32_t first, uint32_t second) {
    return std::endian::native == std::endian::little ? first | uint64_t{second} << 32 : second | uint64_t{first} << 32;
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
