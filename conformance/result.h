// The result of a check.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ltc::conformance {

enum class Outcome {
  kPassed,
  kFailed,
  kUnsupported,      // the plugin says that it cannot, and may
  kNotApplicable,    // a clause that does not concern this plugin
  kExpectedFailure,  // failed, and the vendor's list says so
  kWaived,           // failed, and a waiver excuses it until a date
  kNotRun            // the plugin hangs while it loads, so all others would hang too
};
inline constexpr std::array kOutcomes = {Outcome::kPassed, Outcome::kFailed,      Outcome::kExpectedFailure,
                                         Outcome::kWaived, Outcome::kUnsupported, Outcome::kNotApplicable,
                                         Outcome::kNotRun};

const char* outcome_name(Outcome outcome);

struct Result {
  std::string name;  // "Memory.a_copy_of_no_bytes_succeeds"
  Outcome outcome = Outcome::kFailed;
  int64_t elapsed_ms = 0;
  std::string message;                                 // why, where not passed
  std::string reason;                                  // of the vendor's list or waiver that names it
  std::map<std::string, std::string> properties = {};  // what the check recorded
  bool hung = false;                                   // it had not ended when its time was over

  std::string tier() const;
};

using Results = std::vector<Result>;

// The tiers in the order in which they run.
const std::vector<std::string>& tiers();
// "memory" for "MemoryTransfer.name": the tier that the suite's name begins with.
std::string tier_of(const std::string& name);

// "*" stands for any characters.
bool matches(const std::string& pattern, const std::string& name);

}  // namespace ltc::conformance
