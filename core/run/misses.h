// The account of what was compiled though something like it was in the cache. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/api.h"
#include "core/compile/miss.h"

namespace ltc {

// To be called for each trace that is compiled, `for_all` sizes or for its own. If it resembles one of the last ones, says in the
// log how it differs (info). A place that misses for the same kind of reason again and again is warned of once, with what helps.
void note_compile(const Trace& trace, std::span<const Root> roots, std::span<const LocationId> locations, bool for_all = false);

struct MissCount {
  std::string difference, where;  // the last one's
  int64_t count = 0;              // of this kind at this place, since metrics::reset()
};
LTC_API std::vector<MissCount> misses();  // most frequent first

std::string miss_report();  // of the same, for people; empty if there are none
void reset_misses();

}  // namespace ltc
