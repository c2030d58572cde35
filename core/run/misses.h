// The account of what was compiled though something like it was in the cache. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/api.h"
#include "core/compile/miss.h"
#include "core/compile/saved_program.h"

namespace ltc {

// To be called for each trace that was not in memory, with where its program came from. If it resembles one of the last ones and
// was compiled, says in the log how it differs (info). A place that misses for the same kind of reason again and again is warned
// of once, with what helps. Where nothing but offsets differs, they enter programs by value from then on.
void note_miss(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations,
               CompiledProgram::Source source);

struct MissCount {
  std::string difference, where;  // the last one's
  int64_t count = 0;              // of this kind at this place, since metrics::reset()
};
LTC_API std::vector<MissCount> misses();  // most frequent first

std::string miss_report();  // of the same, for people; empty if there are none
void reset_misses();

}  // namespace ltc
