// The account of what was compiled though something like it was in the cache. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/api.h"
#include "core/compile/build_program.h"
#include "core/report/miss.h"

namespace ltc {

// After so many misses of one kind at one line there is a warning, and new sizes there need not be optimized at once (effort.h).
inline constexpr int64_t kRepeatedMisses = 5;

// A trace that is not in memory, beside the one of the last ones that it resembles.
struct ExplainedMiss {
  std::optional<Miss> miss;  // none: it resembles none
  int64_t earlier = 0;       // misses of its kind at its line before this one, since reset_misses()
};
ExplainedMiss explain_miss(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations);

// To be called when the trace has its program, with where that came from. If it was compiled, says in the log how the trace
// differs (info). A line that misses for the same kind of reason again and again is warned of once, with what helps.
// `may_be_quick`: further ones there need not be optimized.
void note_miss(ExplainedMiss miss, const Trace& trace, std::span<const Root> roots, CompiledProgram::Source source,
               bool may_be_quick);

struct MissCount {
  std::string difference, where;  // the last one's
  int64_t count = 0;              // of this kind at this line, since metrics::reset()
};
LTC_API std::vector<MissCount> misses();  // most frequent first

std::string miss_report();  // of the same, for people; empty if there are none
void reset_misses();

}  // namespace ltc
