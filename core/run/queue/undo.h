// The values that storages held before a step wrote them. A failed run gives them back.
#pragma once

#include <vector>

#include "core/ir/trace.h"
#include "core/run/queue/buffer.h"

namespace ltc {

// A value that a storage held until the step wrote it.
struct Overwritten {
  ValueId value = kNone;    // a value of the trace
  BufferRef buffer = {};    // else a buffer that the trace did not read
  uint32_t before = kNone;  // what the storage held before that: an index into the same list
};

struct Undo {
  std::vector<Overwritten> history;
  // By output of the run: what its storage held before, an index into `history`; kNone for a new storage.
  std::vector<uint32_t> before;
  // The run's outputs beyond those of its program are copies of these. Two storages that came to hold one value by a copy have a
  // buffer each where they held different values before.
  std::vector<uint32_t> copied_from;
};

}  // namespace ltc
