// Why a trace was not found in the cache: the nearest one that was compiled before, and the first difference between the two.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "core/ir/trace.h"

namespace ltc {

// A read or write through a geometry, at a line.
struct StridedAccess {
  LocationId where;
  TypeId geometry;
};

// Records [begin, end) of a trace that neither differ from the nearest trace's nor read one that does.
struct EqualPart {
  uint32_t begin = 0, end = 0;
};

struct Miss {
  enum Kind : uint8_t { kType, kAttribute, kOp, kOperands, kResults };

  Kind kind;
  std::string difference;                   // "aten::mul.Tensor gives f32[5,8] instead of f32[4,8]"
  LocationId where;                         // of the op, or of the first that reads the param
  bool is_size = false;                     // a type of kType differs in its sizes and strides alone
  std::vector<StridedAccess> offsets = {};  // if nothing but offsets of these differs
  std::optional<EqualPart> equal = {};      // the longest one, if nothing but types and attributes differs
};

// In a word: "size", "type", "attribute", "op", "operands" or "results".
std::string_view reason_of(const Miss& miss);

struct SeenTrace {
  Trace trace;
  std::vector<Root> roots;
};

// None where nothing seen resembles the trace: less than half of its ops stand in one order with another's. `locations`: of the
// trace's nodes, in order.
std::optional<Miss> explain_miss(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations,
                                 const std::deque<SeenTrace>& seen);

}  // namespace ltc
