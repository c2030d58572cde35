#include "core/host/validation/report.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <numeric>

#include "core/base/env.h"
#include "core/base/log.h"

namespace ltc::host::validation {
namespace {

std::array<std::atomic<uint64_t>, kClauseCount> counts;
std::atomic<Listener> listener_of_all{nullptr};

}  // namespace

void report(ClauseId id, std::string_view plugin, std::string_view function, const std::string& values) {
  const Clause& clause = id.clause();
  ++counts[id.index()];
  if (const Listener listener = listener_of_all) listener(clause);
  log::error("[", plugin, "] ", function, ": the ", clause.side == Side::kHost ? "host" : "plugin", " broke ", clause.id, ": ",
             clause.sentence, values.empty() ? "" : " Here: ", values);
  if (env::get(env::kValidate) == "abort") std::abort();
}

uint64_t violations(size_t clause) { return counts[clause]; }
uint64_t violations() { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }
void listen(Listener listener) { listener_of_all = listener; }

}  // namespace ltc::host::validation
