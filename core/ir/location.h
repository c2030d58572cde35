// Where in the user's program an op was asked for: for messages only, never part of what identifies a trace or a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/api.h"

namespace ltc {

// A line of the user's program, 32 bits wide so that recording can afford one per op.
using LocationId = uint32_t;
inline constexpr LocationId kNoLocation = 0;

// Set in the id of a gradient's op: the line is that of the op that it differentiates.
inline constexpr LocationId kInBackward = 1u << 31;
// Set where that line is not known: the line is that of the backward's call.
inline constexpr LocationId kBackwardCall = 1u << 30;
inline constexpr LocationId kBackwardBits = kInBackward | kBackwardCall;

// "train.py:31". Equal texts have equal ids, for the life of the process. Any thread.
LTC_API LocationId intern_location(std::string_view text);
LTC_API std::string location_text(LocationId id);  // "train.py:31", "train.py:31 (in its backward)"; empty for kNoLocation
std::string at_location(LocationId id);            // " at train.py:31", or nothing

// Answers where the calling thread is. Called before every op, with no lock of ours held: nanoseconds count. `callers` answers
// which functions of libraries lead from the user's line to here, the innermost first; for accounts that are asked for.
using Locator = LocationId (*)();
LTC_API void set_locator(Locator locator, Locator callers = nullptr);  // the language binding's; without one there are no lines

namespace detail {
extern std::atomic<Locator> locator, callers;
}

inline LocationId current_location() {
  const Locator locator = detail::locator.load(std::memory_order_relaxed);
  return locator ? locator() : kNoLocation;
}
inline LocationId current_callers() {
  const Locator callers = detail::callers.load(std::memory_order_relaxed);
  return callers ? callers() : kNoLocation;
}

}  // namespace ltc
