// Ops that the CPU runs instead of the plugin: what LTC_FALLBACK says of them, and the account of them. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/api.h"
#include "core/compile/lowering/program.h"

namespace ltc {

// To be called where the decision falls, an eager run or the compile of a program with host steps. `op` is "aten::nonzero" or
// "aten::add.Tensor"; `reason` says why, as the end of a sentence. allow: logs each op once (info); warn: once as a warning;
// error: throws Error(kUnsupported). All name the op, its line and the reason.
void check_fallback(std::string_view op, std::string_view reason, LocationId where);

// The same for each node of the program's host steps.
void check_fallbacks(const Program& program);

// Counts one run of it that went well, and the bytes that went to the host and back for it. The counters are aten::<op>, without
// the overload, and FallbackBytes.
void count_fallback(std::string_view op, int64_t bytes);

// Counts the nodes of a host step that has run. Bytes that cross its border are on the account of the node that reads or makes
// them.
void count_host_step(const Graph& graph);

// The account of one op, since metrics::reset().
struct Fallback {
  std::string op, reason;  // with its overload; of its first run
  std::string where;       // line of its first run; empty where that is not known
  int64_t count = 0, bytes = 0;
};
LTC_API std::vector<Fallback> fallbacks();  // those that ran, most frequent first

std::string fallback_report();  // of the same, for people; empty if there are none
void reset_fallbacks();         // the account, not what was said already

// Logs as a warning, once per process and if anything fell back, one line about all of it, whatever was reset.
void log_fallback_summary();

}  // namespace ltc
