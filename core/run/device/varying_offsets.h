// Strided reads and writes whose offset varies from step to step, as that of `data[i : i + 32]` in a loop.
//
// An offset is a constant of the program until two steps differ in offsets alone. From then on it enters programs by value at
// that line, so that a new offset compiles nothing. Constants come first since passes see through them. Any thread.
#pragma once

#include <span>

#include "core/report/miss.h"

namespace ltc {

// Whether reads and writes of this geometry at this line take their offset by value.
bool offset_varies(LocationId where, TypeId geometry);

void note_varying_offsets(std::span<const StridedAccess> accesses);

}  // namespace ltc
