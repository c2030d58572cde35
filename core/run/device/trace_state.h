// A trace that is not yet cut, and the state beside it. A device has one for all threads, and one more for each capture that is
// under way.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/location.h"
#include "core/ir/trace.h"
#include "core/run/device/lazy_storage.h"
#include "core/run/queue/undo.h"

namespace ltc {

// A read of a value through a geometry: the view's type carries its strides.
struct ViewKey {
  ValueId value;
  TypeId declared;  // the storage's: two storages may hold one value, and lay it out differently
  TypeId view;
  int64_t offset;  // in elements
  bool operator==(const ViewKey&) const = default;
};
struct ViewKeyHash {
  size_t operator()(const ViewKey& key) const {
    return hash_mix(hash_mix(uint64_t{key.value} << 32 | key.view, key.declared), static_cast<uint64_t>(key.offset));
  }
};

// An op as the program calls it.
struct CalledOp {
  OpId id = 0;
  LocationId where = kNoLocation;
  bool operator==(const CalledOp&) const = default;
};

struct TraceState {
  uint32_t epoch = 0;  // storages know by it what they hold; no two of a device ever have the same
  Trace trace;
  size_t limit = SIZE_MAX;            // of records, from where on somebody has to look whether the trace goes on
  LocationId awaited = 0, seen = 0;   // kBackwardBits while somebody has to look behind a backward; those met since
  size_t held_bytes = 0;              // of inputs that nobody but the trace holds any more
  CalledOp first;                     // op of the trace
  std::vector<LocationId> locations;  // of the trace's nodes, in order; no part of its identity
  std::vector<LazyStorage*> owners;   // by value: who holds it, null if nobody does or it is a param
  std::vector<BufferRef> inputs;      // of the trace's param records, in order
  std::vector<Scalar> scalars;        // of its scalar records, in order
  std::unordered_map<ViewKey, ValueId, ViewKeyHash> views;
  std::vector<Overwritten> history;  // of the storages that were written

  // In a capture: the buffers that may be read. Any other comes from outside, and would be bound to the program for ever.
  // They are kept, so that no other comes to have the address of one.
  bool is_capture = false;
  std::unordered_set<BufferRef> readable;
};

}  // namespace ltc
