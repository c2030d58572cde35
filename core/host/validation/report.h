// The account of broken clauses of this process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/host/validation/clauses.h"

namespace ltc::host::validation {

// Counts the violation and logs it as an error; with LTC_VALIDATE=abort it ends the process. `values` says which values broke it.
// Any thread.
void report(ClauseId clause, std::string_view plugin, std::string_view function, const std::string& values);

uint64_t violations(size_t clause);  // of that row, in this process
uint64_t violations();               // of all rows

// Called for each violation too; null for nobody.
using Listener = void (*)(const Clause& clause);
void listen(Listener listener);

}  // namespace ltc::host::validation
